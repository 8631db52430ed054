import type { Analysis } from "../analysis.js";
import type { CandidateResult, Prediction } from "../candidate-result.js";
import type { LevelRun, MetricTag } from "../figures.js";
import { runAt } from "../level-walk.js";
import { meanRun } from "../repeated-run.js";
import { compareResults, type Ranked } from "../result-order.js";
import { candidateKey, PARAMETER_NAMES } from "../variant-parameters.js";

/** Candidates whose predictions differ less than this behave alike, so that one of them is verified. */
const ALIKE = 0.005;

/**
 * Number of measurements for which a prediction counts in an estimate. On simulated machines whose measurements are off
 * by 15 to 25%, 2 and 4 find the best configuration about equally often, and 1 less often.
 */
const PREDICTION_WEIGHT = 2;

/** Number of candidates that share the real runs. On the same machines, 1 and 2 find the best one less often. */
const LEADERS = 3;

/** A prediction with what is known of its candidate. */
interface Contender {
  readonly prediction: Prediction;
  /** The prediction with the corrections of real runs. */
  readonly runs: readonly LevelRun[];
  readonly estimate: Ranked;
  /** How often the candidate was measured. */
  readonly measurements: number;
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
 * Chooses the candidate that gets the next real run: of the candidates with the best estimates the one with the fewest
 * measurements. So a candidate that leads by one figure is measured again. An unmeasured candidate that is predicted to
 * behave like a measured one is left out.
 */
export function nextToVerify(choice: VerificationChoice): Prediction | undefined {
  const contenders = ordered(choice);
  const leaders: Contender[] = [];
  const measured = contenders.filter(({ measurements }) => measurements > 0);
  for (const one of contenders) {
    if (leaders.length === LEADERS) break;
    const others = one.measurements > 0 ? [] : [...measured, ...leaders];
    if (!others.some((other) => behavesLike(one, other, choice))) leaders.push(one);
  }
  const fewest = Math.min(...leaders.map(({ measurements }) => measurements));
  return leaders.find(({ measurements }) => measurements === fewest)?.prediction;
}

/** Gives the analysis the estimates of the measured candidates. */
export function keepEstimates(choice: VerificationChoice): void {
  const { analysis, predictions, correct } = choice;
  for (const prediction of predictions) {
    const result = analysis.resultOf(prediction.candidate);
    if (result === undefined || result.runs.length === 0) continue;
    analysis.estimates.set(
      candidateKey(prediction.candidate),
      estimateOf(correct(prediction).runs, result).runs,
    );
  }
}

/** The candidates that have not failed, the best estimate first. Of equal estimates, the plainer candidate is first. */
function ordered({ analysis, predictions, correct }: VerificationChoice): Contender[] {
  return predictions
    .filter(({ candidate }) => analysis.resultOf(candidate)?.fault === undefined)
    .map((prediction): Contender => {
      const { runs } = correct(prediction);
      const result = analysis.resultOf(prediction.candidate);
      if (result === undefined) return { prediction, runs, estimate: { runs }, measurements: 0 };
      const measurements = result.rounds?.length ?? 1;
      return { prediction, runs, estimate: estimateOf(runs, result), measurements };
    })
    .toSorted((a, b) => compareResults(b.estimate, a.estimate, analysis.goal) || weightOf(a) - weightOf(b));
}

/**
 * The weighted means of a prediction and the measurements at the measured levels. One lucky measurement moves it less
 * than several that agree. The memory is the measured one, because it does not vary.
 */
function estimateOf(predicted: readonly LevelRun[], { runs }: CandidateResult): Ranked {
  return {
    runs: runs.map((run) => {
      const foretold = runAt(predicted, run.level);
      if (foretold === undefined) return run;
      const mean = meanRun(run, { ...foretold, measurements: PREDICTION_WEIGHT });
      const models = Object.entries(mean.models).map(([model, one]) => {
        const { cpu_used_ram } = run.models[model]!.figures;
        return [model, { ...one, figures: { ...one.figures, cpu_used_ram } }] as const;
      });
      return { level: run.level, models: Object.fromEntries(models) };
    }),
  };
}

/** Whether two candidates are predicted to be alike in all that the goal looks at. */
function behavesLike(one: Contender, other: Contender, { analysis, settingOf }: VerificationChoice): boolean {
  if (settingOf(one.prediction) !== settingOf(other.prediction)) return false;
  const { objectives, constraints, modelConstraints } = analysis.goal;
  return one.runs.every((run, i) =>
    Object.entries(run.models).every(([model, { figures: mine }]) => {
      const figures = other.runs[i]?.models[model]?.figures;
      if (figures === undefined) return false;
      const tags = Object.keys({
        ...objectives,
        ...constraints,
        ...modelConstraints?.[model],
      }) as MetricTag[];
      return tags.every((tag) => Math.abs(mine[tag] - figures[tag]) <= ALIKE * Math.abs(figures[tag]));
    }),
  );
}

/** Number of parameters with an effect: of equal predictions, the plainer configuration goes first. */
function weightOf({ prediction }: Contender): number {
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
