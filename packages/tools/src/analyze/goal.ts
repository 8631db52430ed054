import { type AnalyzeFigures, type LevelRun, METRICS, type MetricTag } from "./figures.js";

/** Limits of one metric. */
export interface Limit {
  readonly min?: number;
  readonly max?: number;
}

export type Constraints = Readonly<Partial<Record<MetricTag, Limit>>>;

/** What the search looks for. */
export interface SearchGoal {
  /** Weights of the metrics; they are normalised. */
  readonly objectives: Readonly<Partial<Record<MetricTag, number>>>;
  readonly constraints: Constraints;
  /** Constraints of single models, which replace those of the same metrics. */
  readonly modelConstraints?: Readonly<Record<string, Constraints>>;
  /** Weights of the models; 1 unless given. */
  readonly modelWeights?: Readonly<Record<string, number>>;
}

/**
 * Compares two measurements as Model Analyzer does: the sum over objectives of `weight * (a - b) / mean(a, b)`, with the
 * sign such that a positive score means that `a` is better. Scores of several models are weighted.
 */
export function scoreOf(a: LevelRun, b: LevelRun, goal: SearchGoal): number {
  let [sum, weights] = [0, 0];
  for (const [name, run] of Object.entries(a.models)) {
    const weight = goal.modelWeights?.[name] ?? 1;
    weights += weight;
    sum += weight * modelScore(run.figures, b.models[name]?.figures, goal);
  }
  return weights === 0 ? 0 : sum / weights;
}

function modelScore(a: AnalyzeFigures, b: AnalyzeFigures | undefined, { objectives }: SearchGoal): number {
  let [sum, weights] = [0, 0];
  for (const [tag, weight] of Object.entries(objectives) as [MetricTag, number][]) {
    weights += weight;
    sum += weight * metricScore(a[tag], b?.[tag] ?? Number.NaN, METRICS[tag].largerIsBetter);
  }
  return weights === 0 ? 0 : sum / weights;
}

/** A metric that only one of both has counts as 1 for it. */
function metricScore(a: number, b: number, largerIsBetter: boolean): number {
  const [hasA, hasB] = [Number.isFinite(a), Number.isFinite(b)];
  if (!hasA || !hasB) return hasA ? 1 : hasB ? -1 : 0;
  const mean = (a + b) / 2;
  if (mean === 0) return 0;
  return ((largerIsBetter ? 1 : -1) * (a - b)) / mean;
}

/** A constraint that a measurement does not meet. */
export interface Breach {
  readonly model: string;
  readonly tag: MetricTag;
  readonly limit: number;
  readonly value: number;
  /** Distance from the limit in percent of it. */
  readonly percent: number;
}

/** The constraints that a measurement does not meet. A model of which every request failed meets none. */
export function breachesOf(run: LevelRun, goal: SearchGoal): Breach[] {
  return Object.entries(run.models).flatMap(([model, { figures }]) => {
    const constraints = { ...goal.constraints, ...goal.modelConstraints?.[model] };
    return (Object.entries(constraints) as [MetricTag, Limit][]).flatMap(([tag, { min, max }]) => {
      const value = figures[tag];
      const found: Breach[] = [];
      const add = (limit: number, distance: number) => {
        const percent = Number.isNaN(distance) ? 100 : (distance / (limit || 1)) * 100;
        found.push({ model, tag, limit, value, percent });
      };
      if (min !== undefined && !(value >= min)) add(min, min - value);
      if (max !== undefined && !(value <= max)) add(max, value - max);
      return found;
    });
  });
}

/** Distance from the constraints: the sum of percentages, 0 when all are met. */
export function failurePercent(run: LevelRun, goal: SearchGoal): number {
  return breachesOf(run, goal).reduce((sum, { percent }) => sum + percent, 0);
}

/**
 * Positive if `a` is better than `b`. A measurement that meets the constraints is better than one that does not; of two
 * that do not, the nearer one is.
 */
export function compareRuns(a: LevelRun, b: LevelRun, goal: SearchGoal): number {
  const [failA, failB] = [failurePercent(a, goal), failurePercent(b, goal)];
  if (failA > 0 || failB > 0) return (failB - failA) / 100;
  return scoreOf(a, b, goal);
}

/** The measurement that stands for a candidate: the best one that meets the constraints, or the nearest one. */
export function bestRun(runs: readonly LevelRun[], goal: SearchGoal): LevelRun | undefined {
  let best: LevelRun | undefined;
  for (const run of runs) if (best === undefined || compareRuns(run, best, goal) > 0) best = run;
  return best;
}
