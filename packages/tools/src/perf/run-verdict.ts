import { type LevelResult, levelValue, meetsLimit } from "../measure/level-result.js";
import type { LoadPlan } from "../measure/load-plan.js";
import { levelName } from "../report/html/level-charts.js";
import { sixDigits } from "../report/number-texts.js";
import { WRONG_OUTPUT } from "../target/expected-outputs.js";
import type { Assertion } from "./assertions.js";
import { EXIT, type ExitCode } from "./exit-codes.js";

/** The highest level of a search that meets its limit. */
export function bestOf(results: readonly LevelResult[]): LevelResult | undefined {
  return results
    .filter(meetsLimit)
    .toSorted((a, b) => levelValue(a.level) - levelValue(b.level))
    .at(-1);
}

/**
 * Checks the conditions: at the best level of a search, else at every level.
 *
 * @returns a line for each condition that does not hold
 */
export function failedAssertions(
  results: readonly LevelResult[],
  kind: LoadPlan["kind"],
  assertions: readonly Assertion[],
): string[] {
  if (assertions.length === 0) return [];
  const best = kind === "search" ? bestOf(results) : undefined;
  const judged = kind === "search" ? (best === undefined ? [] : [best]) : results;
  if (judged.length === 0) return ["no level was measured that meets the latency limit"];
  return judged.flatMap((result) =>
    assertions.flatMap(({ text, valueIn, holds }) => {
      const value = valueIn(result);
      if (holds(value)) return [];
      const measured = Number.isNaN(value) ? "it was not measured" : `it is ${sixDigits(value)}`;
      return [`${text} does not hold at ${levelName(result)}: ${measured}`];
    }),
  );
}

/** Outputs differed from `validation_data`. */
function hasWrongOutputs({ figures }: LevelResult): boolean {
  return [...figures.failures.keys()].some((text) => text.startsWith(WRONG_OUTPUT));
}

/** The exit code of what was measured. */
export function exitCodeOf(
  results: readonly LevelResult[],
  kind: LoadPlan["kind"],
  hasFailed: boolean,
): ExitCode {
  const fault = results.find((result) => result.fault !== undefined)?.fault;
  if (fault !== undefined) return fault.kind === "no requests" ? EXIT.noRequests : EXIT.error;
  if (results.some(({ interrupted }) => interrupted) || results.length === 0) return EXIT.interrupted;
  if (results.some(hasWrongOutputs)) return EXIT.error;
  if (hasFailed) return EXIT.assertionFailed;
  // A search takes unstable levels for levels over the limit.
  const isUnstable = ({ instability, overLimit }: LevelResult) => instability !== undefined && !overLimit;
  return kind !== "search" && results.some(isUnstable) ? EXIT.unstable : EXIT.ok;
}
