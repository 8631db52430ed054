import { describe, expect, it } from "vitest";
import type { ModelSpace, SearchGoal } from "../../../../src/analyze/candidate.js";
import { parametersKey, type VariantParameters } from "../../../../src/analyze/candidate.js";
import { modelSearch } from "../../../../src/analyze/model-search.js";
import { analysisOf, type DurationRule, SimulatedMachine } from "../../support/simulated-machine.js";

describe("the search with a model of the machine", () => {
  it("foretells every candidate, and the measured ones within 5%", async () => {
    const analysis = analysisOf(new SimulatedMachine());
    const small = { instances: [1, 3], maxBatchSize: [1, 4, 16] };
    await modelSearch(analysis, "m", small, { verify: 1 });
    expect(analysis.predictions.size).toBe(6);
    const ratios = [...analysis.predictions.values()].flatMap(({ candidate, runs }) => {
      const measured = analysis.resultOf(candidate)?.runs[0];
      if (measured === undefined) return [];
      return measured.models.m!.figures.perf_throughput / runs[0]!.models.m!.figures.perf_throughput;
    });
    expect(ratios.length).toBeGreaterThan(3);
    for (const ratio of ratios) expect(ratio).toBeCloseTo(1, 1);
  });

  it("takes two measurements for a further isolation, and foretells it with all threads and instances", async () => {
    // A message to a process costs half as much again, with any number of instances and threads.
    const rule: DurationRule = (rows, { instances = 1, isolation, threads }) =>
      (4 + rows) * instances * (threads === 1 ? 1.2 : 1) * (isolation === "process" ? 1.5 : 1);
    const space = { instances: [1, 2], threads: [0, 1], maxBatchSize: [1, 4, 8] };
    const search = async (more: ModelSpace) => {
      const analysis = analysisOf(new SimulatedMachine(rule));
      await modelSearch(analysis, "m", { ...space, ...more }, { verify: 1 });
      return analysis;
    };
    const plain = await search({});
    const isolated = await search({ isolation: ["default", "process"] });
    expect(isolated.measurements).toBe(plain.measurements + 2);
    expect(isolated.predictions.size).toBe(2 * plain.predictions.size);
    const predictions = [...isolated.predictions.values()];
    const throughput = (parameters: VariantParameters) =>
      predictions.find(({ candidate }) => parametersKey(candidate.m!) === parametersKey(parameters))!.runs[0]!
        .models.m!.figures.perf_throughput;
    for (const instances of [1, 2]) {
      for (const threads of [0, 1]) {
        const same = { instances, threads, maxBatchSize: 8 };
        const ratio =
          throughput({ ...same, isolation: "default" }) / throughput({ ...same, isolation: "process" });
        expect(ratio).toBeCloseTo(1.5, 1);
      }
    }
    expect(isolated.best!.candidate.m).toMatchObject({ isolation: "default", maxBatchSize: 8 });
  });

  it("goes on when several of the first configurations fail and others work", async () => {
    const machine = new SimulatedMachine();
    machine.faultOf = ({ m }) => ((m!.maxBatchSize ?? 16) < 8 ? "too small" : undefined);
    const analysis = analysisOf(machine);
    await modelSearch(analysis, "m", { instances: [1, 2], maxBatchSize: [1, 2, 4, 8, 16] }, { verify: 2 });
    expect(analysis.results.filter(({ fault }) => fault !== undefined).length).toBeGreaterThanOrEqual(3);
    expect(analysis.best!.candidate.m!.maxBatchSize).toBeGreaterThanOrEqual(8);
  });

  it("finds the lowest latency for a request rate", async () => {
    const goal: SearchGoal = { objectives: { perf_latency_p99: 1 }, constraints: {} };
    const load = {
      kind: "levels",
      levels: [{ mode: "request_rate", value: 180, distribution: "poisson" }],
    } as const;
    const analysis = analysisOf(new SimulatedMachine(), { goal, load });
    await modelSearch(
      analysis,
      "m",
      { maxBatchSize: [1, 8], queueDelayMicroseconds: [0, 5000] },
      { verify: 1 },
    );
    // With batches of 1 the instance is busy for 90% of the time.
    expect(analysis.best!.candidate.m).toEqual({ maxBatchSize: 8, queueDelayMicroseconds: 0 });
  });
});
