import type { ModelConfig, ModelDynamicBatching } from "@tritonjs/protocol";

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
  /** Threads with which a session of ONNX Runtime computes one operator; 0 for the default. */
  readonly threads?: number;
}

/** The variant of each tuned model, by name. A model without parameters has its default configuration. */
export type Candidate = Readonly<Record<string, VariantParameters>>;

/** Order of the members in texts and keys. */
export const PARAMETER_NAMES = [
  "instances",
  "isolation",
  "maxBatchSize",
  "queueDelayMicroseconds",
  "preferredBatchSizes",
  "targetLatencyMs",
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
  const { maxBatchSize, targetLatencyMs, queueDelayMicroseconds, preferredBatchSizes, ...rest } = parameters;
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
  const { instances, isolation, maxBatchSize = config.maxBatchSize, targetLatencyMs, threads } = parameters;
  const set = { ...config.parameters };
  const setParameter = (key: string, value: string | number | undefined, none?: string | number) => {
    if (value === undefined) return;
    if (value === none) delete set[key];
    else set[key] = { stringValue: String(value) };
  };
  setParameter("isolation", isolation, "default");
  setParameter("target_latency_ms", targetLatencyMs, 0);
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

function groupsOf({ instanceGroup }: ModelConfig, count: number): ModelConfig["instanceGroup"] {
  const [first] = instanceGroup;
  return [
    first === undefined
      ? {
          name: "",
          kind: "KIND_AUTO",
          count,
          gpus: [],
          secondaryDevices: [],
          profile: [],
          passive: false,
          hostPolicy: "",
        }
      : { ...first, count },
  ];
}

/** The parameters as short text for tables, for instance `2 instances, batch 8, delay 500 µs`. */
export function parametersText(parameters: VariantParameters): string {
  const { instances, isolation, maxBatchSize, queueDelayMicroseconds, preferredBatchSizes, threads } =
    parameters;
  const { targetLatencyMs = 0 } = parameters;
  const parts = [
    instances === undefined ? "" : `${instances} instance${instances === 1 ? "" : "s"}`,
    isolation === undefined || isolation === "default" ? "" : isolation,
    maxBatchSize === undefined ? "" : `batch ${maxBatchSize}`,
    queueDelayMicroseconds ? `delay ${queueDelayMicroseconds} µs` : "",
    preferredBatchSizes?.length ? `prefers ${preferredBatchSizes.join("+")}` : "",
    targetLatencyMs > 0 ? `target ${targetLatencyMs} ms` : "",
    threads ? `${threads} thread${threads === 1 ? "" : "s"}` : "",
  ].filter((part) => part !== "");
  return parts.join(", ") || "default";
}

/** Values that are tried for each parameter of a model. An absent parameter keeps its configured value. */
export type ModelSpace = {
  readonly [Name in keyof VariantParameters]?: readonly NonNullable<VariantParameters[Name]>[];
};

export type SearchSpace = Readonly<Record<string, ModelSpace>>;

/** Bounds of the space that is searched where no values are given. */
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
