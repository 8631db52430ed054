import type { Analysis } from "../analysis.js";
import type { Prediction } from "../candidate-result.js";
import { runsBefore } from "../comparison.js";
import type { LevelRun } from "../figures.js";
import { runAt } from "../level-walk.js";
import { meanRun } from "../repeated-run.js";
import { compareResults } from "../result-order.js";
import { type Candidate, PARAMETER_NAMES } from "../variant-parameters.js";

/** Candidates whose predictions differ less than this behave alike, so that one of them is verified. */
const ALIKE = 0.005;

/** A prediction with the corrections of real runs. */
interface Corrected {
  readonly prediction: Prediction;
  readonly runs: readonly LevelRun[];
  /** Mean of the prediction and the measurements. */
  readonly estimate: { readonly runs: readonly LevelRun[] };
  readonly isMeasured: boolean;
}

/** Parts of a choice. */
export interface VerificationChoice {
  readonly analysis: Analysis;
  readonly predictions: readonly Prediction[];
  /** Corrects the runs of a prediction. */
  correct(prediction: Prediction): Prediction;
  /** A text that is equal for candidates whose real runs correct each other. */
  settingOf(prediction: Prediction): string;
}

/**
 * Chooses the candidate that is measured next: the one with the best prediction that was not measured. Candidates that
 * behave like a measured one are left out, because they teach nothing.
 */
export function nextToVerify(choice: VerificationChoice): Prediction | undefined {
  const all = ordered(choice);
  const measured = all.filter(({ isMeasured }) => isMeasured);
  const next = all.find(
    (one) => !one.isMeasured && !measured.some((other) => behavesLike(one, other, choice)),
  );
  return next?.prediction;
}

/**
 * Chooses the candidates that are compared in turns: the best ones by the mean of prediction and measurement, of which
 * no two behave alike.
 */
export function leadersOf(choice: VerificationChoice, count: number): Candidate[] {
  const leaders: Corrected[] = [];
  for (const one of ordered(choice)) {
    if (leaders.length === count) break;
    if (!leaders.some((other) => behavesLike(one, other, choice))) leaders.push(one);
  }
  return leaders.map(({ prediction }) => prediction.candidate);
}

/** Candidates with the best estimate first; of equal ones the plainer first. Those that failed are left out. */
function ordered(choice: VerificationChoice): Corrected[] {
  const { analysis, predictions } = choice;
  return predictions
    .filter(({ candidate }) => analysis.resultOf(candidate)?.fault === undefined)
    .map((prediction) => correctedOf(prediction, choice))
    .toSorted((a, b) => compareResults(b.estimate, a.estimate, analysis.goal) || weightOf(a) - weightOf(b));
}

function correctedOf(
  prediction: Prediction,
  { analysis, correct }: Pick<VerificationChoice, "analysis" | "correct">,
): Corrected {
  const { runs } = correct(prediction);
  const result = analysis.resultOf(prediction.candidate);
  const measured = result === undefined ? [] : runsBefore(result);
  const means = runs.map((run) => {
    const real = runAt(measured, run.level);
    return real === undefined ? run : meanRun(run, real);
  });
  return { prediction, runs, estimate: { runs: means }, isMeasured: measured.length > 0 };
}

function behavesLike(one: Corrected, other: Corrected, { settingOf }: VerificationChoice): boolean {
  if (settingOf(one.prediction) !== settingOf(other.prediction)) return false;
  return one.runs.every((run, i) =>
    Object.entries(run.models).every(([model, { figures: mine }]) => {
      const figures = other.runs[i]?.models[model]?.figures;
      if (figures === undefined) return false;
      return (["perf_throughput", "perf_latency_p99"] as const).every(
        (tag) => Math.abs(mine[tag] - figures[tag]) <= ALIKE * Math.abs(figures[tag]),
      );
    }),
  );
}

/** Number of parameters with an effect: of equal predictions, the plainer configuration goes first. */
function weightOf({ prediction }: Corrected): number {
  return Object.values(prediction.candidate).reduce(
    (sum, parameters) =>
      sum +
      PARAMETER_NAMES.filter((name) => {
        const value = parameters[name];
        return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== 0;
      }).length,
    0,
  );
}
