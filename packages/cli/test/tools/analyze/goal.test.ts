import { describe, expect, it } from "vitest";
import { bestRun, breachesOf, compareRuns, failurePercent, scoreOf } from "../../../src/analyze/candidate.js";
import { runOf } from "../support/level-runs.js";

const throughput = { objectives: { perf_throughput: 10 }, constraints: {} };

describe("the score", () => {
  it("is the weighted difference divided by the mean, with normalised weights", () => {
    expect(scoreOf(runOf({ perf_throughput: 300 }), runOf({ perf_throughput: 100 }), throughput)).toBe(1);
    const goal = { objectives: { perf_throughput: 3, perf_latency_p99: 1 }, constraints: {} };
    const [a, b] = [
      runOf({ perf_throughput: 300, perf_latency_p99: 30 }),
      runOf({ perf_throughput: 100, perf_latency_p99: 10 }),
    ];
    // (3 * 1 - 1 * 1) / 4: the latency is worse by its mean.
    expect(scoreOf(a, b, goal)).toBe(0.5);
    expect(scoreOf(b, a, goal)).toBe(-0.5);
  });

  it("counts a metric that only one of both has as 1 for it", () => {
    const goal = { objectives: { cpu_used_ram: 1 }, constraints: {} };
    expect(scoreOf(runOf({}), runOf({ cpu_used_ram: Number.NaN }), goal)).toBe(1);
    expect(scoreOf(runOf({ cpu_used_ram: Number.NaN }), runOf({}), goal)).toBe(-1);
  });

  it("weights several models", () => {
    const both = (a: number, b: number) => ({
      ...runOf({}),
      models: {
        ...runOf({ perf_throughput: a }, "a").models,
        ...runOf({ perf_throughput: b }, "b").models,
      },
    });
    const goal = { ...throughput, modelWeights: { a: 3, b: 1 } };
    expect(scoreOf(both(300, 100), both(100, 300), goal)).toBe(0.5);
  });
});

describe("constraints", () => {
  const goal = {
    objectives: { perf_throughput: 1 },
    constraints: { perf_latency_p99: { max: 10 }, perf_throughput: { min: 200 } },
  };

  it("sum up their distances in percent of the limits", () => {
    const run = runOf({ perf_latency_p99: 15, perf_throughput: 150 });
    expect(failurePercent(run, goal)).toBe(75);
    expect(breachesOf(run, goal).map(({ tag, percent }) => [tag, percent])).toEqual([
      ["perf_latency_p99", 50],
      ["perf_throughput", 25],
    ]);
  });

  it("put a run that meets them before a faster one that does not, and a nearer one before a farther one", () => {
    const [meets, fast, slow] = [
      runOf({ perf_latency_p99: 9, perf_throughput: 200 }),
      runOf({ perf_latency_p99: 11, perf_throughput: 900 }),
      runOf({ perf_latency_p99: 40, perf_throughput: 950 }),
    ];
    expect(compareRuns(meets, fast, goal)).toBeGreaterThan(0);
    expect(compareRuns(fast, slow, goal)).toBeGreaterThan(0);
    expect(bestRun([slow, fast, meets], goal)).toBe(meets);
  });

  it("of one model replace the common ones of the same metric", () => {
    const own = { ...goal, modelConstraints: { m: { perf_latency_p99: { max: 20 } } } };
    expect(failurePercent(runOf({ perf_latency_p99: 15, perf_throughput: 200 }), own)).toBe(0);
  });

  it("are not met by a metric that was not measured", () => {
    expect(failurePercent(runOf({ perf_latency_p99: Number.NaN, perf_throughput: 200 }), goal)).toBe(100);
  });
});
