import { beforeAll, describe, expect, it } from "vitest";
import type { CandidateResult } from "../../../src/analyze/candidate-result.js";
import { measurementCount } from "../../../src/analyze/candidate-result.js";
import { bruteSearch } from "../../../src/analyze/search/brute-search.js";
import { modelSearch } from "../../../src/analyze/search/model-search.js";
import { Random } from "../../../src/data/random.js";
import { noisySpeed, steppingSpeed, wanderingSpeed } from "../../support/drifting-speed.js";
import { analysisOf, SimulatedMachine } from "../../support/simulated-machine.js";

const load = { kind: "levels", levels: [{ mode: "concurrency", value: 32 }] } as const;
const space = {
  instances: [1, 2],
  maxBatchSize: [1, 2, 4, 8, 16, 32],
  queueDelayMicroseconds: [0, 500, 1000, 2000],
};
const throughput = ({ runs }: CandidateResult) => runs[0]!.models.m!.figures.perf_throughput;

describe("the search with a model of the machine, on a machine whose speed changes", () => {
  const exact = analysisOf(new SimulatedMachine(), { load });
  beforeAll(() => bruteSearch(exact, { m: space }));

  it.each([
    ["each measurement is off by 5%", noisySpeed, 3],
    ["the speed wanders by 20%", wanderingSpeed, 3],
    ["the speed steps by a factor of 1.7", steppingSpeed, 2],
  ])("finds the best configuration in a quarter of the measurements: %s", async (_, speedOf, least) => {
    const ratios: number[] = [];
    for (let seed = 1; seed <= 3; seed++) {
      const machine = new SimulatedMachine();
      machine.noise = speedOf(new Random(seed * 7919));
      const found = analysisOf(machine, { load });
      await modelSearch(found, "m", space, { verify: 4 });
      expect(machine.measured).toBe(found.measurements);
      expect(found.measurements).toBeLessThanOrEqual(exact.measurements / 4);
      ratios.push(throughput(exact.resultOf(found.best!.candidate)!) / throughput(exact.best!));
    }
    expect(ratios.filter((ratio) => ratio >= 0.95).length).toBeGreaterThanOrEqual(least);
  });

  it("does not choose the default configuration for one lucky measurement", async () => {
    const machine = new SimulatedMachine();
    machine.noise = () => (machine.measured === 1 ? 3 : 1);
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 4 });
    const { best } = analysis;
    expect(best!.candidate.m!.maxBatchSize).toBeGreaterThan(4);
    expect(best!.compared).toMatchObject({ rounds: 1 });
  });

  it("measures the leaders in turns, every other round backwards", async () => {
    const machine = new SimulatedMachine();
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 8 });
    const [a, b, ...rest] = machine.opened.slice(-4);
    expect(a).not.toEqual(b);
    expect(rest).toEqual([b, a]);
    expect([a, b]).toContainEqual(analysis.best!.candidate);
    expect(measurementCount(analysis.results)).toBe(machine.measured);
  });

  it("compares the next one when a leader can no longer be loaded", async () => {
    const machine = new SimulatedMachine();
    let broken = "";
    machine.faultOf = (candidate) => {
      // The first leader is opened after the default, five batch sizes and two verified candidates.
      if (machine.opened.length === 9) broken = JSON.stringify(candidate);
      return JSON.stringify(candidate) === broken ? "no memory" : undefined;
    };
    const analysis = analysisOf(machine, { load });
    await modelSearch(analysis, "m", space, { verify: 4 });
    const compared = analysis.results.filter((one) => one.compared !== undefined);
    expect(compared).toHaveLength(2);
    expect(analysis.results.find(({ fault }) => fault === "no memory")).toBeDefined();
    expect(compared).toContain(analysis.best);
  });
});
