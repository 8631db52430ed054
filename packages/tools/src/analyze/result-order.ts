import type { CandidateResult } from "./candidate-result.js";
import { bestRun, compareRuns, type SearchGoal } from "./goal.js";

/** What an order needs of a result, an estimate or a prediction. */
export type Ranked = Pick<CandidateResult, "runs">;

/** Positive if `a` is better than `b`, each at its best level. */
export function compareResults(a: Ranked, b: Ranked, goal: SearchGoal): number {
  const [runA, runB] = [bestRun(a.runs, goal), bestRun(b.runs, goal)];
  if (runA === undefined || runB === undefined)
    return Number(runA !== undefined) - Number(runB !== undefined);
  return compareRuns(runA, runB, goal);
}
