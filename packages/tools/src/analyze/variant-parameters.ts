import type { ModelConfig, ModelDynamicBatching } from "@tritonjs/protocol";

export const VARIANT_ISOLATIONS = ["default", "worker", "process"] as const;

export type VariantIsolation = (typeof VARIANT_ISOLATIONS)[number];

/** What a variant changes in the configuration of a model. An absent member leaves the configuration as it is. */
export interface VariantParameters {
  /** Number of instances of the model. */
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

/** A text that is equal for equal parameters. */
export function parametersKey(parameters: VariantParameters): string {
  return JSON.stringify(PARAMETER_NAMES.map((name) => parameters[name] ?? null));
}

/** A text that is equal for candidates with equal parameters of all models. */
export function candidateKey(candidate: Candidate): string {
  return JSON.stringify(
    Object.keys(candidate)
      .toSorted()
      .map((model) => [model, parametersKey(candidate[model]!)]),
  );
}

/** The parameters keep the default configuration. */
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

/** One group of this number of instances, with the other settings of the first group. */
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
