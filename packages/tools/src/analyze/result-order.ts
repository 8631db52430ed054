import type { CandidateResult } from "./candidate-result.js";
import { bestRun, compareRuns, failurePercent, type SearchGoal } from "./goal.js";

/** What an order needs of a result or a prediction. */
type Ranked = Pick<CandidateResult, "runs" | "compared">;

/**
 * Positive if `a` is better than `b`, each at its best level. Candidates that were measured in turns come before the
 * others of the same standing with the constraints, whose figures are of another time.
 */
export function compareResults(a: Ranked, b: Ranked, goal: SearchGoal): number {
  const [runA, runB] = [bestRun(a.runs, goal), bestRun(b.runs, goal)];
  if (runA === undefined || runB === undefined)
    return Number(runA !== undefined) - Number(runB !== undefined);
  const turns = Number(a.compared !== undefined) - Number(b.compared !== undefined);
  const isOfOneKind = failurePercent(runA, goal) > 0 === failurePercent(runB, goal) > 0;
  return turns !== 0 && isOfOneKind ? turns : compareRuns(runA, runB, goal);
}

/** Whether the best level of a result meets all constraints. */
export function meetsGoal(result: Ranked, goal: SearchGoal): boolean {
  const run = bestRun(result.runs, goal);
  return run !== undefined && failurePercent(run, goal) === 0;
}
