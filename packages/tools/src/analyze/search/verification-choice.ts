import type { Analysis } from "../analysis.js";
import { compareResults } from "../analysis.js";
import type { Prediction } from "../candidate-result.js";
import type { LevelRun } from "../figures.js";
import { runAt } from "../level-walk.js";
import { meanRun } from "../repeated-run.js";
import { PARAMETER_NAMES } from "../variant-parameters.js";

/** Candidates whose predictions differ less than this behave alike, so that one of them is verified. */
const ALIKE = 0.005;

/** Most measurements of a candidate. A repetition shows whether the first one was luck. */
const MOST_MEASUREMENTS = 2;

/** A prediction with the corrections of real runs. */
interface Corrected {
  readonly prediction: Prediction;
  readonly runs: readonly LevelRun[];
  /** Mean of the prediction and the measurements. */
  readonly estimate: { readonly runs: readonly LevelRun[] };
  /** Number of measurements. */
  readonly count: number;
}

/** Parts of a choice. */
export interface VerificationChoice {
  readonly analysis: Analysis;
  readonly predictions: readonly Prediction[];
  /** Corrects the runs of a prediction. */
  correct(prediction: Prediction): Prediction;
  /** A text that is equal for candidates whose real runs correct each other. */
  settingOf(prediction: Prediction): string;
  /** No further choice follows. */
  readonly isLast: boolean;
}

/**
 * Chooses what is measured next: the candidate with the best estimate, which may have been measured once before. The
 * last choice repeats the leader if it was measured only once. So a lucky measurement seldom wins. Candidates that
 * behave like a measured one are left out, because they teach nothing.
 */
export function nextToVerify(choice: VerificationChoice): Prediction | undefined {
  const { analysis, isLast } = choice;
  const all = choice.predictions.map((prediction) => correctedOf(prediction, choice));
  const measured = all.filter(({ count }) => count > 0);
  if (isLast) {
    const leader = measured.find(
      ({ prediction }) => analysis.resultOf(prediction.candidate) === analysis.best,
    );
    if (leader?.count === 1) return leader.prediction;
  }
  const open = all.filter(
    (one) =>
      one.count < MOST_MEASUREMENTS &&
      (one.count > 0 || !measured.some((other) => behavesLike(one, other, choice))),
  );
  open.sort((a, b) => compareResults(b.estimate, a.estimate, analysis.goal) || weightOf(a) - weightOf(b));
  return open[0]?.prediction;
}

function correctedOf(
  prediction: Prediction,
  { analysis, correct }: Pick<VerificationChoice, "analysis" | "correct">,
): Corrected {
  const { runs } = correct(prediction);
  const measured = analysis.resultOf(prediction.candidate)?.runs ?? [];
  const means = runs.map((run) => {
    const real = runAt(measured, run.level);
    return real === undefined ? run : meanRun(run, real);
  });
  return { prediction, runs, estimate: { runs: means }, count: measured[0]?.measurements ?? measured.length };
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
