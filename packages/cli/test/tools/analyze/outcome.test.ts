import { describe, expect, it } from "vitest";
import { type AnalysisOutcome, type RankedResult, rankAgreement } from "../../../src/analyze/outcome.js";
import { runOf } from "../support/level-runs.js";

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
