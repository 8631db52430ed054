import { expect, it } from "vitest";
import { consoleTable } from "../../../../src/analyze/analysis-reports.js";
import type { AnalysisOutcome, RankedResult } from "../../../../src/analyze/outcome.js";
import { runOf } from "../../support/level-runs.js";

/** An outcome with the default configuration and others, by throughput and spread. */
function outcome(
  rows: readonly (readonly [throughput: number, spread: number | undefined])[],
): AnalysisOutcome {
  const ranked = rows.map(([perf_throughput, spread], i): RankedResult => {
    const run = { ...runOf({ perf_throughput }), ...(spread !== undefined && { spread }) };
    const isDefault = i === rows.length - 1;
    const candidate = { m: isDefault ? {} : { maxBatchSize: 2 ** i } };
    return {
      result: { candidate, runs: [run], ...(!isDefault && { number: i }) },
      run,
      breaches: [],
    };
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
