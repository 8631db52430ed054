import type { ModelConfig, ModelDynamicBatching, ModelInstanceGroup } from "@tritonjs/protocol";

export interface OpenedCandidate {
  /**
   * Measures one level of load on all loaded models at the same time.
   *
   * @param share measures for this share of three windows, whether they agree or not; until the windows agree unless given
   */
  measure(level: AnalyzeLevel, signal: AbortSignal, share?: number): Promise<LevelRun>;
  close(): Promise<void>;
}

export interface AnalyzeMachine {
  readonly configs: Readonly<Record<string, ModelConfig>>;
  /** Names of the models that get load: the tuned models, or the ensemble of which they are steps. */
  readonly loaded: readonly string[];
  readonly batchSize: number;
  /** Parameters that it cannot vary. @default none */
  readonly fixed?: readonly (keyof VariantParameters)[];
  /** Smallest `maxBatchSize` with which a model can be loaded, by its name: an ensemble asks that of its steps. */
  readonly leastBatchSizes?: Readonly<Record<string, number>>;
  /** Milliseconds that a whole measurement takes of a model that answers often; undefined if that is not known. */
  readonly wholeMs?: number | undefined;
  open(candidate: Candidate): Promise<OpenedCandidate>;
  close(): Promise<void>;
  /** Writes the models of a result, ready to serve, into a repository. */
  writeVariants?(result: CandidateResult, folder: string): Promise<void>;
}

export interface CandidateResult {
  /** Number of the variant in the order of measurement; undefined for the default configuration. */
  readonly number?: number;
  readonly candidate: Candidate;
  readonly runs: readonly LevelRun[];
  /** Why the candidate has no measurement: it could not be loaded, or every request failed. */
  readonly fault?: string;
  /** The level is not one of the search: the run shows how long batches take. */
  readonly isCalibration?: boolean;
  /** An interruption came before its last level. */
  readonly isPartial?: boolean;
  /** The single measurements of which `runs` are the means, in their order; absent if there is one. */
  readonly rounds?: readonly (readonly LevelRun[])[];
}

export interface Prediction {
  readonly candidate: Candidate;
  readonly runs: readonly LevelRun[];
}

/** Name of a model's variant in results and in the output repository. */
export function variantName(model: string, number: number | undefined): string {
  return `${model}_config_${number ?? "default"}`;
}

/** Number of measured levels, which is the effort of a search. */
export function measurementCount(results: readonly CandidateResult[]): number {
  return results.reduce(
    (sum, { runs }) => runs.reduce((count, run) => count + (run.measurements ?? 1), sum),
    0,
  );
}

/** A result, an estimate or a prediction, as an order compares it. */
export type Ranked = Pick<CandidateResult, "runs">;

/** Positive if `a` is better than `b`, each at its best level. */
export function compareResults(a: Ranked, b: Ranked, goal: SearchGoal): number {
  const [runA, runB] = [bestRun(a.runs, goal), bestRun(b.runs, goal)];
  if (runA === undefined || runB === undefined)
    return Number(runA !== undefined) - Number(runB !== undefined);
  return compareRuns(runA, runB, goal);
}

export const VARIANT_ISOLATIONS = ["default", "worker", "process"] as const;

type VariantIsolation = (typeof VARIANT_ISOLATIONS)[number];

/** Changes of a variant in the configuration of a model. An absent member leaves the configuration as it is. */
export interface VariantParameters {
  readonly instances?: number;
  /** Where an instance runs; `default` for the default of its backend. */
  readonly isolation?: VariantIsolation;
  readonly maxBatchSize?: number;
  readonly queueDelayMicroseconds?: number;
  readonly preferredBatchSizes?: readonly number[];
  /** Target of adaptive batching in milliseconds; 0 for none. */
  readonly targetLatencyMs?: number;
  /** Default limit in milliseconds with which requests run by their deadlines; 0 for no deadlines. */
  readonly deadlineMs?: number;
  /** Threads with which a session of ONNX Runtime computes one operator; 0 for the default. */
  readonly threads?: number;
}

/** The variant of each tuned model, by name. A model without parameters has its default configuration. */
export type Candidate = Readonly<Record<string, VariantParameters>>;

export const PARAMETER_NAMES = [
  "instances",
  "isolation",
  "maxBatchSize",
  "queueDelayMicroseconds",
  "preferredBatchSizes",
  "targetLatencyMs",
  "deadlineMs",
  "threads",
] as const satisfies readonly (keyof VariantParameters)[];

export function parametersKey(parameters: VariantParameters): string {
  return JSON.stringify(PARAMETER_NAMES.map((name) => parameters[name] ?? null));
}

export function candidateKey(candidate: Candidate): string {
  return JSON.stringify(
    Object.keys(candidate)
      .toSorted()
      .map((model) => [model, parametersKey(candidate[model]!)]),
  );
}

export function isDefault(parameters: VariantParameters): boolean {
  return PARAMETER_NAMES.every((name) => parameters[name] === undefined);
}

/** Drops parameters that have no effect, so that variants that behave alike have one key. */
export function canonical(parameters: VariantParameters): VariantParameters {
  const { maxBatchSize, queueDelayMicroseconds, preferredBatchSizes, ...others } = parameters;
  // A model with deadlines cannot have a target too.
  const { targetLatencyMs, ...rest } =
    others.deadlineMs && others.targetLatencyMs ? { ...others, targetLatencyMs: 0 } : others;
  const unbatched = maxBatchSize !== undefined && maxBatchSize <= 1;
  const isAdaptive = targetLatencyMs !== undefined && targetLatencyMs > 0;
  const hasRules = !unbatched && !isAdaptive;
  const possible = preferredBatchSizes?.filter((size) => maxBatchSize === undefined || size <= maxBatchSize);
  // Without preferred sizes, the largest batch is preferred.
  const sizes = possible?.length === 1 && possible[0] === maxBatchSize ? [] : possible;
  return {
    ...rest,
    ...(maxBatchSize !== undefined && { maxBatchSize }),
    ...(targetLatencyMs !== undefined && !unbatched && { targetLatencyMs }),
    ...(queueDelayMicroseconds !== undefined && hasRules && { queueDelayMicroseconds }),
    ...(sizes !== undefined && hasRules && { preferredBatchSizes: sizes }),
  };
}

const EMPTY_BATCHING: ModelDynamicBatching = {
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
};

/** Makes the configuration of a variant. A model with a sequence batcher keeps it; the others get a dynamic batcher. */
export function variantConfig(config: ModelConfig, parameters: VariantParameters): ModelConfig {
  if (isDefault(parameters)) return config;
  const {
    instances,
    isolation,
    maxBatchSize = config.maxBatchSize,
    targetLatencyMs,
    deadlineMs,
    threads,
  } = parameters;
  const set = { ...config.parameters };
  const setParameter = (key: string, value: string | number | undefined, none?: string | number) => {
    if (value === undefined) return;
    if (value === none) delete set[key];
    else set[key] = { stringValue: String(value) };
  };
  setParameter("isolation", isolation, "default");
  setParameter("target_latency_ms", targetLatencyMs, 0);
  if (deadlineMs !== undefined) {
    setParameter("deadlines", deadlineMs > 0 ? "true" : "false", "false");
    setParameter("deadline_default_ms", deadlineMs, 0);
  }
  setParameter("intra_op_thread_count", threads, 0);
  const isBatched = maxBatchSize > 1 && config.sequenceBatching === undefined;
  if (!isBatched) delete set.target_latency_ms;
  const { dynamicBatching, ...rest } = config;
  return {
    ...rest,
    maxBatchSize,
    parameters: set,
    ...(instances !== undefined && { instanceGroup: groupsOf(config, instances) }),
    ...(isBatched && { dynamicBatching: batchingOf(dynamicBatching, parameters, config.maxBatchSize) }),
  };
}

function batchingOf(
  configured: ModelDynamicBatching = EMPTY_BATCHING,
  { maxBatchSize, preferredBatchSizes, queueDelayMicroseconds }: VariantParameters,
  configuredSize: number,
): ModelDynamicBatching {
  const size = maxBatchSize ?? configuredSize;
  // The completion of configurations prefers the largest batch, which is another one now.
  const { preferredBatchSize: kept } = configured;
  const isCompleted = size !== configuredSize && kept.length === 1 && kept[0] === configuredSize;
  const preferred = preferredBatchSizes ?? (isCompleted ? [] : kept);
  return {
    ...configured,
    preferredBatchSize: preferred.filter((one) => one <= size),
    maxQueueDelayMicroseconds: queueDelayMicroseconds ?? configured.maxQueueDelayMicroseconds,
  };
}

/** A group of instances without settings. */
export const PLAIN_GROUP: ModelInstanceGroup = {
  name: "",
  kind: "KIND_AUTO",
  count: 1,
  gpus: [],
  secondaryDevices: [],
  profile: [],
  passive: false,
  hostPolicy: "",
};

function groupsOf({ instanceGroup }: ModelConfig, count: number): ModelConfig["instanceGroup"] {
  const [first = PLAIN_GROUP] = instanceGroup;
  return [{ ...first, count }];
}

/** The parameters as short text for tables, for instance `2 instances, batch 8, delay 500 µs`. */
export function parametersText(parameters: VariantParameters): string {
  const { instances, isolation, maxBatchSize, queueDelayMicroseconds, preferredBatchSizes, threads } =
    parameters;
  const { targetLatencyMs = 0, deadlineMs = 0 } = parameters;
  const parts = [
    instances === undefined ? "" : `${instances} instance${instances === 1 ? "" : "s"}`,
    isolation === undefined || isolation === "default" ? "" : isolation,
    maxBatchSize === undefined ? "" : `batch ${maxBatchSize}`,
    queueDelayMicroseconds ? `delay ${queueDelayMicroseconds} µs` : "",
    preferredBatchSizes?.length ? `prefers ${preferredBatchSizes.join("+")}` : "",
    targetLatencyMs > 0 ? `target ${targetLatencyMs} ms` : "",
    deadlineMs > 0 ? `deadlines ${deadlineMs} ms` : "",
    threads ? `${threads} thread${threads === 1 ? "" : "s"}` : "",
  ].filter((part) => part !== "");
  return parts.join(", ") || "default";
}

/** Values that are tried for each parameter of a model. An absent parameter keeps its configured value. */
export type ModelSpace = {
  readonly [Name in keyof VariantParameters]?: readonly NonNullable<VariantParameters[Name]>[];
};

export type SearchSpace = Readonly<Record<string, ModelSpace>>;

interface SpaceBounds {
  readonly maxInstances: number;
  readonly maxBatchSize: number;
  /** Limit on the p99 latency, which adds adaptive batching to the space. */
  readonly latencyBudgetMs?: number;
  readonly cores: number;
  /** Whether configurations are simulated, so that most of them take no measurement. */
  readonly isSimulated: boolean;
  readonly fixed?: readonly (keyof VariantParameters)[];
}

/** Smallest preferred sizes that are simulated. Their multiples by powers of two are preferred too. */
const SMALLEST_PREFERRED = [4, 16];

/** Backends whose instances can run in a worker or in a process. */
const ISOLATED_BACKENDS = ["onnxruntime", "javascript", "tensorflow"];

export function defaultSpace(config: ModelConfig, bounds: SpaceBounds): ModelSpace {
  const batches = config.maxBatchSize > 0;
  const isDynamic = batches && config.sequenceBatching === undefined;
  const isOnnx = config.backend === "onnxruntime" || config.platform === "onnxruntime_onnx";
  // A configured isolation may be there for safety, so it stays.
  const hasIsolations =
    (isOnnx || ISOLATED_BACKENDS.includes(config.backend)) && config.parameters.isolation === undefined;
  const space: ModelSpace = {
    instances: Array.from({ length: bounds.maxInstances }, (_, i) => i + 1),
    ...(hasIsolations && bounds.isSimulated && { isolation: ["default", "process"] }),
    ...(batches && { maxBatchSize: powersOfTwo(bounds.maxBatchSize) }),
    ...(isDynamic && { queueDelayMicroseconds: [0, 500, 2000] }),
    ...(isDynamic && bounds.isSimulated && { preferredBatchSizes: preferredSizes(bounds.maxBatchSize) }),
    ...(isDynamic &&
      bounds.latencyBudgetMs !== undefined && { targetLatencyMs: [0, bounds.latencyBudgetMs] }),
    ...(isOnnx && bounds.cores > 1 && { threads: [0, 1] }),
  };
  const { fixed = [] } = bounds;
  return Object.fromEntries(
    Object.entries(space).filter(([name]) => !fixed.includes(name as keyof VariantParameters)),
  );
}

/** No preferred sizes, and lists up to the largest batch: without it, a long queue would run in small batches. */
function preferredSizes(max: number): number[][] {
  return [[], ...SMALLEST_PREFERRED.map((smallest) => powersOfTwo(max, smallest))];
}

function powersOfTwo(max: number, first = 1): number[] {
  const powers: number[] = [];
  for (let value = first; value <= max; value *= 2) powers.push(value);
  return powers;
}

export function variantsOf(space: ModelSpace): VariantParameters[] {
  let all: VariantParameters[] = [{}];
  for (const name of PARAMETER_NAMES) {
    const values = space[name];
    if (values === undefined || values.length === 0) continue;
    all = all.flatMap((variant) => values.map((value) => ({ ...variant, [name]: value })));
  }
  return [...new Map(all.map(canonical).map((variant) => [parametersKey(variant), variant])).values()];
}

export function candidatesOf(space: SearchSpace): Candidate[] {
  let all: Candidate[] = [{}];
  for (const [model, values] of Object.entries(space)) {
    const variants = variantsOf(values);
    all = all.flatMap((candidate) => variants.map((variant) => ({ ...candidate, [model]: variant })));
  }
  return all;
}

export interface Limit {
  readonly min?: number;
  readonly max?: number;
}

export type Constraints = Readonly<Partial<Record<MetricTag, Limit>>>;

export interface SearchGoal {
  readonly objectives: Readonly<Partial<Record<MetricTag, number>>>;
  readonly constraints: Constraints;
  /** Constraints of single models, which replace those of the same metrics. */
  readonly modelConstraints?: Readonly<Record<string, Constraints>>;
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

export const eachMetric = (figureOf: (tag: MetricTag) => number): AnalyzeFigures =>
  Object.fromEntries(METRIC_TAGS.map((tag) => [tag, figureOf(tag)])) as unknown as AnalyzeFigures;

export interface AnalyzeLevel {
  readonly mode: "concurrency" | "request_rate";
  readonly value: number;
  readonly distribution?: "constant" | "poisson";
}

export interface ModelRun {
  readonly figures: AnalyzeFigures;
  /** Latency that half of the requests do not exceed, in milliseconds; absent of predictions. */
  readonly medianMs?: number;
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
  /** Range of the throughput between the windows or turns of the measurement, as a share of its mean. */
  readonly spread?: number;
  /** Processor time of this process for these requests of all models; absent unless it was asked for. */
  readonly cpu?: { readonly ms: number; readonly requests: number };
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
