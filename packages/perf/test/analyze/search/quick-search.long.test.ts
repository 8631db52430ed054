import { describe, expect, it } from "vitest";
import type { LevelRun } from "../../../src/analyze/candidate.js";
import { failurePercent } from "../../../src/analyze/candidate.js";
import { neighbourhood, quickSearch } from "../../../src/analyze/quick-search.js";
import { analysisOf, SimulatedMachine } from "../../support/simulated-machine.js";

const space = { maxBatchSize: [1, 2, 4, 8, 16], instances: [1, 2, 3] };

describe("the quick search", () => {
  it("looks at all coordinates within a distance of 3", () => {
    const dimension = (count: number) => ({
      model: "m",
      parameter: "instances" as const,
      count,
      valueAt: (index: number) => index,
    });
    const around = neighbourhood([0, 0], 3, [dimension(8), dimension(8)]);
    expect(around).toHaveLength(10);
    expect(around).toContainEqual([2, 2]);
    expect(around).not.toContainEqual([2, 3]);
    expect(neighbourhood([0, 0], 3, [dimension(2), dimension(1)])).toEqual([[1, 0]]);
  });

  it("starts at the smallest configuration, measures three neighbours and climbs", async () => {
    const machine = new SimulatedMachine();
    const analysis = analysisOf(machine, { load: { kind: "automatic", min: 1, max: 64 } });
    await quickSearch(analysis, { m: space });
    const [fallback, home, ...neighbours] = machine.opened.map(({ m }) => m!);
    expect(fallback).toEqual({});
    expect(home).toEqual({ maxBatchSize: 1, instances: 1 });
    // The first three differ in as many indexes as possible from those that are known.
    expect(neighbours.slice(0, 3)).toEqual([
      { maxBatchSize: 2, instances: 2 },
      { maxBatchSize: 4, instances: 3 },
      { maxBatchSize: 8, instances: 1 },
    ]);
    expect(analysis.best!.candidate.m!.maxBatchSize).toBeGreaterThanOrEqual(8);
    expect(analysis.results.length).toBeLessThan(5 * 3);
  });

  it("gives each candidate two batches in flight for each instance", async () => {
    const machine = new SimulatedMachine();
    const analysis = analysisOf(machine, { load: { kind: "automatic", min: 4, max: 50 } });
    await quickSearch(analysis, { m: space });
    for (const { candidate, runs } of analysis.results.slice(1)) {
      const { maxBatchSize, instances } = candidate.m!;
      expect(runs[0]!.level.value).toBe(Math.min(50, Math.max(4, 2 * maxBatchSize! * instances!)));
    }
  });

  it("measures the best three and the default under rising load, until the throughput no longer rises", async () => {
    const analysis = analysisOf(new SimulatedMachine(), { load: { kind: "automatic", min: 1, max: 256 } });
    await quickSearch(analysis, { m: space });
    const swept = analysis.results.filter(({ runs }) => runs.length > 1);
    expect(swept.length).toBe(4);
    expect(swept.some(({ number }) => number === undefined)).toBe(true);
    for (const { runs } of swept) {
      const values = runs.slice(1).map(({ level }) => level.value);
      // The first level was measured before.
      const own = runs[0]!.level.value;
      const doubled = values.map((_, i) => 2 ** i).filter((value) => value !== own);
      expect(values.slice(0, 3)).toEqual(doubled.slice(0, 3));
      const last = runs.toSorted((a, b) => a.level.value - b.level.value).slice(-4);
      const rates = last.map(({ models }) => models.m!.figures.perf_throughput);
      expect(Math.max(...rates) / rates[0]! <= 1.05 || values.at(-1) === 256).toBe(true);
    }
  });

  it("finds the highest load within a limit on the latency, in at most five steps after the sweep", async () => {
    const goal = { objectives: { perf_throughput: 1 }, constraints: { perf_latency_p99: { max: 40 } } };
    const analysis = analysisOf(new SimulatedMachine(), {
      goal,
      load: { kind: "automatic", min: 1, max: 256 },
    });
    await quickSearch(analysis, { m: { maxBatchSize: [16], instances: [1] } });
    const [, { runs }] = analysis.results as [unknown, { runs: readonly LevelRun[] }];
    const met = runs.filter((run) => failurePercent(run, goal) === 0).map(({ level }) => level.value);
    const missed = runs.filter((run) => failurePercent(run, goal) > 0).map(({ level }) => level.value);
    // A batch of 16 takes 20 ms, so 32 requests in flight take 40 ms.
    expect(Math.max(...met)).toBe(32);
    expect(Math.min(...missed)).toBeLessThan(36);
    expect(runs.filter(({ level }) => Math.log2(level.value) % 1 !== 0).length).toBeLessThanOrEqual(5);
  });

  it("finds a configuration within a limit on the latency", async () => {
    const goal = { objectives: { perf_throughput: 1 }, constraints: { perf_latency_p99: { max: 30 } } };
    const analysis = analysisOf(new SimulatedMachine(), {
      goal,
      load: { kind: "automatic", min: 1, max: 64 },
    });
    await quickSearch(analysis, { m: space });
    const [run] = analysis.best!.runs;
    expect(run!.models.m!.figures.perf_latency_p99).toBeLessThanOrEqual(30);
    expect(run!.models.m!.figures.perf_throughput).toBeGreaterThan(300);
  });

  it("searches the dimensions of several models together", async () => {
    const machine = new SimulatedMachine(undefined, ["a", "b"]);
    const analysis = analysisOf(machine);
    await quickSearch(analysis, { a: space, b: { maxBatchSize: [1, 2, 4, 8], instances: [1] } });
    const { a, b } = analysis.best!.candidate;
    expect([a!.maxBatchSize! > 1, b!.maxBatchSize! > 1]).toEqual([true, true]);
    expect(Object.keys(analysis.best!.runs[0]!.models)).toEqual(["a", "b"]);
  });
});
