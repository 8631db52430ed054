import { beforeAll, describe, expect, it } from "vitest";
import type { CandidateResult } from "../../../src/analyze/candidate-result.js";
import { measurementCount } from "../../../src/analyze/candidate-result.js";
import { bruteSearch } from "../../../src/analyze/search/brute-search.js";
import { modelSearch } from "../../../src/analyze/search/model-search.js";
import { candidateKey } from "../../../src/analyze/variant-parameters.js";
import { Random } from "../../../src/data/random.js";
import { noisySpeed, steppingSpeed, wanderingSpeed } from "../../support/drifting-speed.js";
import { analysisOf, SimulatedMachine } from "../../support/simulated-machine.js";

const load = { kind: "levels", levels: [{ mode: "concurrency", value: 32 }] } as const;
const space = {
  instances: [1, 2],
  maxBatchSize: [1, 2, 4, 8, 16, 32],
  queueDelayMicroseconds: [0, 1000],
};
const throughput = ({ runs }: CandidateResult) => runs[0]!.models.m!.figures.perf_throughput;

describe("the search with a model of the machine, on a machine whose speed changes", () => {
  const exact = analysisOf(new SimulatedMachine(), { load });
  beforeAll(() => bruteSearch(exact, { m: space }));

  it.each([
    ["each measurement is off by 15%", (random: Random) => noisySpeed(random, 0.15), 3],
    ["the speed wanders by 20%", wanderingSpeed, 3],
    ["the speed steps by a factor of 1.7", steppingSpeed, 2],
  ])("finds the best of 24 configurations with ten measurements: %s", async (_, speedOf, least) => {
    const ratios: number[] = [];
    for (let seed = 1; seed <= 3; seed++) {
      const machine = new SimulatedMachine();
      machine.noise = speedOf(new Random(seed * 7919));
      const found = analysisOf(machine, { load });
      await modelSearch(found, "m", space, { verify: 4 });
      expect(machine.measured).toBe(found.measurements);
      expect(found.measurements).toBeLessThanOrEqual(10);
      const { candidate } = found.best!;
      const withDelay = { m: { queueDelayMicroseconds: 0, ...candidate.m } };
      const real = exact.resultOf(candidate) ?? exact.resultOf(withDelay);
      ratios.push(throughput(real!) / throughput(exact.best!));
    }
    expect(ratios.filter((ratio) => ratio >= 0.95).length).toBeGreaterThanOrEqual(least);
  });

  it("does not choose the default configuration for one lucky measurement", async () => {
    const machine = new SimulatedMachine();
    machine.noise = () => (machine.measured === 1 ? 3 : 1);
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 4 });
    expect(analysis.best!.candidate.m!.maxBatchSize).toBeGreaterThan(4);
    const lucky = analysis.resultOf(analysis.defaultCandidate)!;
    expect(throughput(lucky)).toBeGreaterThan(throughput(analysis.best!));
  });

  it("does not take a configuration to meet a limit for one lucky latency", async () => {
    const machine = new SimulatedMachine();
    machine.noise = () => (machine.measured === 1 ? 3 : 1);
    const goal = { objectives: { cpu_used_ram: 1 }, constraints: { perf_latency_p99: { max: 38 } } };
    const analysis = analysisOf(machine, { load, goal });
    await modelSearch(analysis, "m", space, { verify: 4 });
    const latency = ({ runs }: Pick<CandidateResult, "runs">) => runs[0]!.models.m!.figures.perf_latency_p99;
    const lucky = analysis.resultOf(analysis.defaultCandidate)!;
    expect(latency(lucky)).toBeLessThan(38);
    expect(latency(analysis.estimateOf(lucky))).toBeGreaterThan(38);
    expect(analysis.best!.candidate.m).toMatchObject({ instances: 1, maxBatchSize: 32 });
  });

  it("measures a leader again, and reports the mean of its measurements", async () => {
    const machine = new SimulatedMachine();
    const factors = new Map<string, number[]>();
    machine.noise = (candidate) => {
      const key = candidateKey(candidate);
      const factor = 1 + machine.measured / 1000;
      factors.set(key, [...(factors.get(key) ?? []), factor]);
      return factor;
    };
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 4 });
    const { candidate, rounds, runs } = analysis.best!;
    const own = factors.get(candidateKey(candidate))!;
    expect(own.length).toBeGreaterThan(1);
    expect(rounds).toHaveLength(own.length);
    const mean = own.reduce((sum, factor) => sum + factor, 0) / own.length;
    expect(throughput({ candidate, runs })).toBeCloseTo(
      (throughput({ candidate, runs: rounds![0]! }) / own[0]!) * mean,
    );
    expect(measurementCount(analysis.results)).toBe(machine.measured);
  });

  it("measures another candidate when a leader can no longer be loaded", async () => {
    const machine = new SimulatedMachine();
    const opened = new Set<string>();
    let broken: string | undefined;
    machine.faultOf = (candidate) => {
      const key = candidateKey(candidate);
      if (opened.has(key)) broken ??= key;
      opened.add(key);
      return key === broken ? "no memory" : undefined;
    };
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 4 });
    const failed = analysis.results.filter(({ fault }) => fault === "no memory");
    expect(failed.map(({ candidate, runs }) => [candidateKey(candidate), runs])).toEqual([[broken, []]]);
    expect(analysis.best).not.toBe(failed[0]);
    expect(candidateKey(machine.opened.at(-1)!)).not.toBe(broken);
  });
});
