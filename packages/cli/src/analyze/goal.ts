export interface Limit {
  readonly min?: number;
  readonly max?: number;
}

export type Constraints = Readonly<Partial<Record<MetricTag, Limit>>>;

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

/** Metrics of a measurement, with Model Analyzer's tags. Latencies are milliseconds, memory is megabytes. */
export interface AnalyzeFigures {
  readonly perf_throughput: number;
  readonly perf_latency_avg: number;
  readonly perf_latency_p90: number;
  readonly perf_latency_p95: number;
  readonly perf_latency_p99: number;
  /** Memory of this process and its child processes. */
  readonly cpu_used_ram: number;
}

export type MetricTag = keyof AnalyzeFigures;

/** All metrics, and whether larger values are better. */
export const METRICS: Readonly<
  Record<MetricTag, { readonly largerIsBetter: boolean; readonly unit: string }>
> = {
  perf_throughput: { largerIsBetter: true, unit: "infer/s" },
  perf_latency_avg: { largerIsBetter: false, unit: "ms" },
  perf_latency_p90: { largerIsBetter: false, unit: "ms" },
  perf_latency_p95: { largerIsBetter: false, unit: "ms" },
  perf_latency_p99: { largerIsBetter: false, unit: "ms" },
  cpu_used_ram: { largerIsBetter: false, unit: "MB" },
};

export const METRIC_TAGS = Object.keys(METRICS) as readonly MetricTag[];

export interface AnalyzeLevel {
  readonly mode: "concurrency" | "request_rate";
  readonly value: number;
  readonly distribution?: "constant" | "poisson";
}

export interface ModelRun {
  readonly figures: AnalyzeFigures;
  /** Mean rows of a batch; absent where the server does not tell. */
  readonly meanRows?: number;
  readonly batchesPerSecond?: number;
  readonly failures: number;
  readonly failureText?: string;
}

export interface LevelRun {
  readonly level: AnalyzeLevel;
  readonly models: Readonly<Record<string, ModelRun>>;
  /** Number of measurements of which the figures are the mean. @default 1 */
  readonly measurements?: number;
}

/** Load that candidates get. */
export type AnalyzeLoad =
  | { readonly kind: "levels"; readonly levels: readonly AnalyzeLevel[] }
  /** Two batches in flight for each instance, within bounds. It is Model Analyzer's rule for its quick search. */
  | { readonly kind: "automatic"; readonly min: number; readonly max: number };

/** Rows that a candidate can run at the same time. */
export interface Capacity {
  readonly maxBatchSize: number;
  readonly instances: number;
}

/** Levels at which a candidate is measured. */
export function levelsOf(load: AnalyzeLoad, capacity: Capacity, rows: number): readonly AnalyzeLevel[] {
  if (load.kind === "levels") return load.levels;
  const value = Math.min(load.max, Math.max(load.min, fullConcurrency(capacity, rows)));
  return [{ mode: "concurrency", value }];
}

/** Requests in flight that keep a second batch ready for each instance. */
export function fullConcurrency(capacity: Capacity, rows: number): number {
  return Math.max(1, Math.ceil((2 * rowsOf(capacity)) / rows));
}

/** Requests in flight that fill one batch of each instance. */
export function busyConcurrency(capacity: Capacity, rows: number): number {
  return Math.max(1, Math.ceil(rowsOf(capacity) / rows));
}

const rowsOf = ({ maxBatchSize, instances }: Capacity) => Math.max(1, maxBatchSize) * instances;
