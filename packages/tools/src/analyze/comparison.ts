import type { CandidateResult } from "./candidate-result.js";
import type { LevelRun } from "./figures.js";
import type { SearchGoal } from "./goal.js";
import { runAt } from "./level-walk.js";
import { meanRun } from "./repeated-run.js";
import { type Candidate, candidateKey } from "./variant-parameters.js";

/** A text that is equal for comparisons of the same candidates by the same goal. */
export function comparisonId(candidates: readonly Candidate[], goal: SearchGoal): string {
  return JSON.stringify([goal, candidates.map(candidateKey).toSorted()]);
}

/** A result with one more round of a comparison. Its runs become the means of the rounds. */
export function withRound(result: CandidateResult, id: string, round: readonly LevelRun[]): CandidateResult {
  if (result.compared?.id !== id) {
    const { compared: _, ...rest } = withoutComparison(result);
    return { ...rest, runs: round, compared: { id, rounds: 1, before: rest.runs } };
  }
  const { compared, runs } = result;
  return { ...result, runs: meansOf(runs, round), compared: { ...compared, rounds: compared.rounds + 1 } };
}

/** A result whose rounds count as further measurements: a later comparison has other candidates or another goal. */
export function withoutComparison(result: CandidateResult): CandidateResult {
  const { compared, runs, ...rest } = result;
  if (compared === undefined) return result;
  return { ...rest, runs: compared.before.length === 0 ? runs : meansOf(compared.before, runs) };
}

/** The runs of a candidate outside of a comparison. */
export function runsBefore({ compared, runs }: CandidateResult): readonly LevelRun[] {
  return compared?.before ?? runs;
}

function meansOf(runs: readonly LevelRun[], others: readonly LevelRun[]): LevelRun[] {
  return runs.map((run) => {
    const other = runAt(others, run.level);
    return other === undefined ? run : meanRun(run, other);
  });
}
