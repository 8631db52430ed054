import { describe, expect, it } from "vitest";
import type { AnalyzeLevel } from "../../../../src/analyze/candidate.js";
import { bruteSearch } from "../../../../src/analyze/quick-search.js";
import { isPlateau } from "../../../../src/analyze/run-candidate.js";
import { analysisOf, SimulatedMachine, sharedCores } from "../../support/simulated-machine.js";

const concurrencies = (...values: number[]) => ({
  kind: "levels" as const,
  levels: values.map((value): AnalyzeLevel => ({ mode: "concurrency", value })),
});

describe("the exhaustive search", () => {
  it("takes four values whose best is at most 5% above the first for a plateau", () => {
    expect(isPlateau([100, 104, 105, 105])).toBe(true);
    expect(isPlateau([100, 104, 106, 105])).toBe(false);
    expect(isPlateau([100, 104, 105])).toBe(false);
    expect(isPlateau([10, 100, 90, 80, 70])).toBe(true);
  });

  it("ends the batch sizes where the throughput no longer rises", async () => {
    const machine = new SimulatedMachine();
    const analysis = analysisOf(machine, { load: concurrencies(8) });
    const sizes = { maxBatchSize: [128, 64, 32, 16, 8, 4, 2, 1], queueDelayMicroseconds: [0, 500] };
    await bruteSearch(analysis, { m: sizes }, { endsSizesEarly: true });
    const measured = (delay: number | undefined) =>
      machine.opened
        .map(({ m }) => m!)
        .filter(
          ({ maxBatchSize, queueDelayMicroseconds }) => maxBatchSize && queueDelayMicroseconds === delay,
        )
        .map(({ maxBatchSize }) => maxBatchSize);
    // With 8 requests in flight, batches of more than 8 gain nothing. A batch of 1 knows no delay, and is measured once.
    expect(measured(undefined)).toEqual([1]);
    expect(measured(0)).toEqual([2, 4, 8, 16, 32, 64]);
    expect(measured(500)).toEqual([2, 4, 8, 16, 32, 64]);
  });

  it("measures all batch sizes of a list unless it may end early", async () => {
    const machine = new SimulatedMachine();
    await bruteSearch(analysisOf(machine, { load: concurrencies(8) }), {
      m: { maxBatchSize: [1, 8, 16, 32, 64] },
    });
    expect(machine.opened.length).toBe(6);
  });

  it("ends the batch sizes at one that does not work, and goes on with the next number of instances", async () => {
    const machine = new SimulatedMachine();
    machine.faultOf = ({ m }) => (m!.maxBatchSize! > 2 ? "no memory" : undefined);
    const analysis = analysisOf(machine, { load: concurrencies(8) });
    const space = { instances: [1, 2], maxBatchSize: [1, 2, 4, 8] };
    await bruteSearch(analysis, { m: space }, { endsSizesEarly: true });
    expect(machine.opened.map(({ m }) => [m!.instances, m!.maxBatchSize]).slice(1)).toEqual([
      [1, 1],
      [1, 2],
      [1, 4],
      [2, 1],
      [2, 2],
      [2, 4],
    ]);
  });

  it("ends the loads of a configuration where the throughput no longer rises", async () => {
    const analysis = analysisOf(new SimulatedMachine(), { load: concurrencies(1, 2, 4, 8, 16, 32, 64) });
    await bruteSearch(analysis, { m: { maxBatchSize: [2], instances: [1] } }, { endsLoadsEarly: true });
    const [, { runs }] = analysis.results as [unknown, (typeof analysis.results)[number]];
    // Batches are full from 2 requests in flight on.
    expect(runs.map(({ level }) => level.value)).toEqual([1, 2, 4, 8, 16]);
  });

  it("bisects between the last load that meets the constraints and the first that does not", async () => {
    const goal = { objectives: { perf_throughput: 1 }, constraints: { perf_latency_p99: { max: 40 } } };
    const analysis = analysisOf(new SimulatedMachine(), { goal, load: concurrencies(1, 20, 200) });
    await bruteSearch(analysis, { m: { maxBatchSize: [16], instances: [1] } });
    const [, { runs }] = analysis.results as [unknown, (typeof analysis.results)[number]];
    // A batch of 16 takes 20 ms, so 32 requests in flight take 40 ms.
    expect(runs.map(({ level }) => level.value)).toEqual([1, 20, 200, 110, 65, 42, 31, 36]);
    expect(analysis.best!.runs).toBe(runs);
  });

  it("bisects request rates too", async () => {
    const goal = { objectives: { perf_throughput: 1 }, constraints: { perf_latency_p99: { max: 40 } } };
    const levels = [100, 400].map(
      (value) => ({ mode: "request_rate", value, distribution: "constant" }) as const,
    );
    const analysis = analysisOf(new SimulatedMachine(), { goal, load: { kind: "levels", levels } });
    await bruteSearch(analysis, { m: { maxBatchSize: [1], instances: [1] } });
    const [, { runs }] = analysis.results as [unknown, (typeof analysis.results)[number]];
    // 5 ms for each request: 200 a second.
    expect(runs.slice(2).map(({ level }) => level.value)).toEqual([250, 175, 212.5, 193.75, 203.125]);
    expect(runs.every(({ level }) => "distribution" in level)).toBe(true);
  });

  it("sweeps the load of the best configurations when it has chosen the load itself", async () => {
    const analysis = analysisOf(new SimulatedMachine(sharedCores), {
      load: { kind: "automatic", min: 1, max: 64 },
    });
    await bruteSearch(analysis, { m: { maxBatchSize: [1, 2, 4, 8, 16] } });
    const { best, results } = analysis;
    const [fallback] = results;
    expect([best!.runs.length > 3, fallback!.runs.length > 3]).toEqual([true, true]);
    expect(results.filter(({ runs }) => runs.length === 1).length).toBeGreaterThan(1);
  });
});
