import { describe, expect, it } from "vitest";
import {
  analysisHtml,
  consoleTable,
  type FrontierPoint,
  frontierOf,
} from "../../src/analyze/analysis-reports.js";
import { bestRun, breachesOf, compareRuns, failurePercent, scoreOf } from "../../src/analyze/candidate.js";
import { modelSearch } from "../../src/analyze/model-search.js";
import {
  type AnalysisOutcome,
  outcomeOf,
  type RankedResult,
  rankAgreement,
} from "../../src/analyze/outcome.js";
import { runOf } from "../support/level-runs.js";
import { analysisOf, SimulatedMachine } from "../support/simulated-machine.js";

const goal = { objectives: { perf_throughput: 1 }, constraints: {} };

/** Measured throughputs with the places that the simulation gave them; undefined for one that was not simulated. */
function outcome(
  rows: readonly (readonly [throughput: number, rank: number | undefined])[],
): AnalysisOutcome {
  const ranked = rows.map(([perf_throughput, rank]): RankedResult => {
    const run = runOf({ perf_throughput });
    return {
      result: { candidate: { m: {} }, runs: [run] },
      run,
      breaches: [],
      ...(rank !== undefined && { simulated: { rank, run } }),
    };
  });
  return { ranked, goal } as unknown as AnalysisOutcome;
}

describe("how well the simulation ranks", () => {
  it.each<[string, [number, number | undefined][], number, number]>([
    ["is 1 where it has the measured order", [[300, 1], [200, 2], [100, 5]], 3, 1], // biome-ignore format: rows
    [
      "is 0 where it has the opposite order",
      [
        [300, 3],
        [200, 2],
        [100, 1],
      ],
      3,
      0,
    ],
    [
      "is the share of the pairs in the measured order",
      [
        [300, 2],
        [200, 1],
        [100, 3],
      ],
      3,
      2 / 3,
    ],
    [
      "does not depend on the order of the results",
      [
        [100, 3],
        [300, 2],
        [200, 1],
      ],
      3,
      2 / 3,
    ],
    [
      "leaves out pairs with equal measurements",
      [
        [300, 1],
        [200, 3],
        [200, 2],
      ],
      2,
      1,
    ],
    [
      "leaves out results without a simulation",
      [
        [300, undefined],
        [200, 1],
        [100, 2],
      ],
      1,
      1,
    ],
    ["is unknown for a single result", [[300, 1]], 0, Number.NaN],
  ])("%s", (_, rows, pairs, share) => {
    expect(rankAgreement(outcome(rows))).toEqual({ pairs, share });
  });
});

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
      models: { ...runOf({ perf_throughput: a }, "a").models, ...runOf({ perf_throughput: b }, "b").models },
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

const point = (throughput: number, p99Ms: number): FrontierPoint => ({ throughput, p99Ms, text: "" });

const pairs = (points: readonly FrontierPoint[]) =>
  points.map(({ throughput, p99Ms }) => [throughput, p99Ms]);

describe("the frontier", () => {
  it.each<[string, [number, number][], [number, number][]]>([
    ["is empty without points", [], []],
    ["has a single point", [[100, 5]], [[100, 5]]],
    ["leaves out a point with less throughput and more latency", [[100, 5], [90, 6]], [[100, 5]]], // biome-ignore format: rows
    [
      "keeps a point with less throughput and less latency",
      [
        [100, 5],
        [90, 4],
      ],
      [
        [90, 4],
        [100, 5],
      ],
    ],
    [
      "rises with the throughput",
      [
        [50, 2],
        [200, 9],
        [100, 5],
        [80, 7],
      ],
      [
        [50, 2],
        [100, 5],
        [200, 9],
      ],
    ],
    [
      "has one of two points with equal latency: the one with more throughput",
      [
        [90, 5],
        [100, 5],
      ],
      [[100, 5]],
    ],
    [
      "has one of two points with equal throughput: the one with less latency",
      [
        [100, 6],
        [100, 5],
      ],
      [[100, 5]],
    ],
    [
      "leaves out a point without a latency",
      [
        [100, Number.NaN],
        [90, 4],
      ],
      [[90, 4]],
    ],
  ])("%s", (_, points, frontier) => {
    expect(pairs(frontierOf(points.map(([x, y]) => point(x, y))))).toEqual(frontier);
  });
});

describe("the plot of a report", () => {
  it("draws every simulated and measured configuration, the default one, and the frontier in their order", async () => {
    const analysis = analysisOf(new SimulatedMachine());
    const space = { maxBatchSize: [1, 8], queueDelayMicroseconds: [0, 500] };
    await modelSearch(analysis, "m", space, { verify: 1 });
    const described = { search: "model", elapsedMs: 0, toolVersion: "0", command: "" };
    const outcome = outcomeOf(analysis, described);
    const html = analysisHtml(outcome);
    const series = (number: number) =>
      [...html.matchAll(new RegExp(`<g class="series-${number}">(.*?)</g>`, "gs"))].map(
        ([, marks]) => marks!,
      );
    const titles = (marks: string) => [...marks.matchAll(/<title>(.*?)<\/title>/g)].map(([, text]) => text!);
    const [simulated, frontier, measured, fallback] = [7, 4, 1, 3].map((number) => series(number).join(""));
    expect(titles(simulated!)).toHaveLength(analysis.predictions.size);
    expect(titles(measured!)).toHaveLength(outcome.ranked.length);
    expect(titles(fallback!)).toEqual([expect.stringMatching(/^default: \d+ infer\/s, p99 [\d.]+ ms$/)]);
    const rates = titles(frontier!).map((text) => Number(/(\d+) infer\/s/.exec(text)![1]));
    expect(rates.length).toBeGreaterThan(0);
    expect(rates).toEqual(rates.toSorted((a, b) => a - b));
    // The fastest measured configuration ends the frontier.
    const best = Math.max(...outcome.ranked.map(({ run }) => run.models.m!.figures.perf_throughput));
    expect(rates.at(-1)).toBe(Math.round(best));
    // Every point of the frontier is a measured one.
    for (const text of titles(frontier!)) expect(titles(measured!)).toContain(text);
  });
});

describe("noise", () => {
  /** An outcome with the default configuration and others, by throughput and spread. */
  function outcome(
    rows: readonly (readonly [throughput: number, spread: number | undefined])[],
  ): AnalysisOutcome {
    const ranked = rows.map(([perf_throughput, spread], i): RankedResult => {
      const run = { ...runOf({ perf_throughput }), ...(spread !== undefined && { spread }) };
      const isDefault = i === rows.length - 1;
      const candidate = { m: isDefault ? {} : { maxBatchSize: 2 ** i } };
      return { result: { candidate, runs: [run], ...(!isDefault && { number: i }) }, run, breaches: [] };
    });
    const goal = { objectives: { perf_throughput: 1 }, constraints: {} };
    const counts = { measurements: rows.length, elapsedMs: 1000, predictions: [], failed: [] };
    return {
      ranked,
      goal,
      models: ["m"],
      configs: {},
      search: "quick",
      ...counts,
    } as unknown as AnalysisOutcome;
  }

  const lines = (text: string) => text.replaceAll(/\n {2,}/g, " ");

  it("says how much figures varied, and marks a gain that is no more than that", () => {
    const text = lines(consoleTable(outcome([[110, 0.05], [104, 0.2], [100, 0.12]]), 3)); // biome-ignore format: rows
    expect(text).toMatch(/config_0 .*\+10% +noise/);
    expect(text).toMatch(/config_1 .*\+4% +noise/);
    expect(text).toContain("+10% throughput against the default, which may be noise.");
    expect(text).toContain("that of the default configuration by 12%, at most by 20% (config_1).");
  });

  it("does not call a larger gain noise, and says nothing of noise that was not measured", () => {
    const larger = consoleTable(outcome([[150, 0.05], [100, 0.12]]), 2); // biome-ignore format: rows
    expect(larger).not.toMatch(/\+50% +noise/);
    const unknown = consoleTable(outcome([[110, undefined], [100, undefined]]), 2); // biome-ignore format: rows
    expect(unknown).not.toContain("oise");
  });
});
