import { describe, expect, it } from "vitest";
import { analysisHtml, type FrontierPoint, frontierOf } from "../../../../src/analyze/analysis-reports.js";
import { modelSearch } from "../../../../src/analyze/model-search.js";
import { outcomeOf } from "../../../../src/analyze/outcome.js";
import { analysisOf, SimulatedMachine } from "../../support/simulated-machine.js";

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
