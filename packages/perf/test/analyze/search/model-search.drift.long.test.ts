import { beforeAll, describe, expect, it } from "vitest";
import type { CandidateResult } from "../../../src/analyze/candidate.js";
import { type Candidate, candidateKey, measurementCount } from "../../../src/analyze/candidate.js";
import { modelSearch } from "../../../src/analyze/model-search.js";
import { bruteSearch } from "../../../src/analyze/quick-search.js";
import { Random } from "../../../src/data/random.js";
import { noisySpeed, steppingSpeed, wanderingSpeed } from "../../support/drifting-speed.js";
import { analysisOf, SimulatedMachine } from "../../support/simulated-machine.js";

const load = { kind: "levels", levels: [{ mode: "concurrency", value: 32 }] } as const;
const space = { instances: [1, 2], maxBatchSize: [1, 2, 4, 8, 16, 32], queueDelayMicroseconds: [0, 1000] };
/** The default configuration is three times as fast as usual in the first phase. */
const luckyDefault = (machine: SimulatedMachine) => (candidate: Candidate) =>
  machine.measured < 7 && candidate.m!.maxBatchSize === undefined ? 3 : 1;
const throughput = ({ runs }: CandidateResult) => runs[0]!.models.m!.figures.perf_throughput;

describe("the search with a model of the machine, on a machine whose speed changes", () => {
  const exact = analysisOf(new SimulatedMachine(), { load });
  beforeAll(() => bruteSearch(exact, { m: space }));

  it.each([
    ["each measurement is off by 15%", (random: Random) => noisySpeed(random, 0.15), 4],
    ["the speed wanders by 20%", wanderingSpeed, 6],
    ["the speed steps by a factor of 1.7", steppingSpeed, 6],
  ])("finds the best of 24 configurations with ten measurements: %s", async (_, speedOf, least) => {
    const ratios: number[] = [];
    for (let seed = 1; seed <= 6; seed++) {
      const machine = new SimulatedMachine();
      const speed = speedOf(new Random(seed * 7919));
      machine.noise = (_, share) => speed(share);
      const found = analysisOf(machine, { load });
      await modelSearch(found, "m", space, { verify: 3 });
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
    machine.noise = luckyDefault(machine);
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 3 });
    expect(analysis.best!.candidate.m!.maxBatchSize).toBeGreaterThan(4);
    const lucky = analysis.resultOf(analysis.defaultCandidate)!;
    const [first] = lucky.rounds ?? [lucky.runs];
    expect(throughput({ ...lucky, runs: first! })).toBeGreaterThan(throughput(analysis.best!));
  });

  it("does not take a configuration to meet a limit for one lucky latency", async () => {
    const machine = new SimulatedMachine();
    machine.noise = luckyDefault(machine);
    const goal = { objectives: { cpu_used_ram: 1 }, constraints: { perf_latency_p99: { max: 38 } } };
    const analysis = analysisOf(machine, { load, goal });
    await modelSearch(analysis, "m", space, { verify: 3 });
    const latency = ({ runs }: Pick<CandidateResult, "runs">) => runs[0]!.models.m!.figures.perf_latency_p99;
    const lucky = analysis.resultOf(analysis.defaultCandidate)!;
    expect(latency(lucky)).toBeLessThan(38);
    expect(latency(analysis.estimateOf(lucky))).toBeGreaterThan(38);
    expect(analysis.best!.candidate.m).toMatchObject({ instances: 1, maxBatchSize: 32 });
  });

  it("measures a leader that it has measured again, and reports the mean", async () => {
    const machine = new SimulatedMachine();
    // The machine is twice as fast while the leaders are verified.
    machine.noise = () => (machine.measured < 7 ? 1 : 2);
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 3 });
    const again = analysis.results.filter(({ rounds }) => rounds !== undefined);
    expect(again.length).toBeGreaterThan(0);
    for (const { candidate, rounds, runs } of again) {
      const figures = rounds!.map((round) => throughput({ candidate, runs: round }));
      expect(figures[1]! / figures[0]!).toBeGreaterThan(1.8);
      expect(throughput({ candidate, runs })).toBeCloseTo((figures[0]! + figures[1]!) / 2);
    }
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
    await modelSearch(analysis, "m", space, { verify: 3 });
    const failed = analysis.results.filter(({ fault }) => fault === "no memory");
    expect(failed.map(({ candidate, runs }) => [candidateKey(candidate), runs])).toEqual([[broken, []]]);
    expect(analysis.best).not.toBe(failed[0]);
    expect(candidateKey(machine.opened.at(-1)!)).not.toBe(broken);
  });
});
