import type { Prediction } from "../candidate-result.js";
import type { LevelRun, MetricTag } from "../figures.js";
import type { SearchGoal } from "../goal.js";
import { compareResults, type Ranked } from "../result-order.js";
import { PARAMETER_NAMES } from "../variant-parameters.js";
import type { CandidateEstimates } from "./candidate-estimates.js";

/** Candidates whose predictions differ less than this behave alike, so that one of them is verified. */
const ALIKE = 0.005;

interface Contender {
  readonly prediction: Prediction;
  readonly estimate: Ranked;
  readonly isMeasured: boolean;
}

/**
 * The candidates with the best estimates that are not verified yet, the best one first. A candidate that has failed is
 * left out, and so is an unmeasured one that is predicted to behave like a measured one or like a leader.
 *
 * @param settingOf a text that is equal for candidates whose predictions have the same corrections
 */
export function leadersOf(
  estimates: CandidateEstimates,
  predictions: readonly Prediction[],
  count: number,
  settingOf: (prediction: Prediction) => string,
): Prediction[] {
  const { analysis } = estimates;
  const contenders = predictions
    .filter(
      ({ candidate }) =>
        analysis.resultOf(candidate)?.fault === undefined && !estimates.isVerified(candidate),
    )
    .map((prediction): Contender => {
      const isMeasured = analysis.resultOf(prediction.candidate) !== undefined;
      return { prediction, estimate: estimates.of(prediction), isMeasured };
    })
    // Of equal estimates, the plainer candidate is first.
    .toSorted((a, b) => compareResults(b.estimate, a.estimate, analysis.goal) || weightOf(a) - weightOf(b));
  const leaders: Contender[] = [];
  const measured = contenders.filter(({ isMeasured }) => isMeasured);
  const areAlike = ({ prediction: one }: Contender, { prediction: other }: Contender) =>
    settingOf(one) === settingOf(other) && behavesLike(one.runs, other.runs, analysis.goal);
  for (const one of contenders) {
    if (leaders.length === count) break;
    const others = one.isMeasured ? [] : [...measured, ...leaders];
    if (!others.some((other) => areAlike(one, other))) leaders.push(one);
  }
  return leaders.map(({ prediction }) => prediction);
}

/** Whether two candidates are predicted to be alike in all that the goal looks at. */
function behavesLike(one: readonly LevelRun[], other: readonly LevelRun[], goal: SearchGoal): boolean {
  const { objectives, constraints, modelConstraints } = goal;
  return one.every((run, i) =>
    Object.entries(run.models).every(([model, { figures: mine }]) => {
      const figures = other[i]?.models[model]?.figures;
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
