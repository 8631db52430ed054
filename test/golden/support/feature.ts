import type { ParsedConfig } from "./config-text.js";

/** What a model needs of the server beyond plain inference and batching. */
export type ModelFeature =
  | "decoupled"
  | "sequence"
  | "ensemble"
  | "response cache"
  | "warmup"
  | "rate limiter"
  | "queue policy"
  | "priority"
  | "ragged batch"
  | "shape tensor"
  | "labels"
  | "other backend";

/** Backends whose models are small enough to be played by callbacks. */
const playedBackends = ["python", "identity", "repeat", "square"];

/** What serving a model with this configuration needs. */
export function featuresOf(config: ParsedConfig): Set<ModelFeature> {
  const features = new Set<ModelFeature>();
  const add = (feature: ModelFeature, needed: boolean | undefined): void => {
    if (needed) features.add(feature);
  };
  const batching = config.dynamicBatching;
  add("decoupled", config.modelTransactionPolicy?.decoupled);
  add("sequence", config.sequenceBatching !== undefined);
  add("ensemble", config.ensembleScheduling !== undefined);
  add("response cache", config.responseCache?.enable);
  add("warmup", (config.modelWarmup?.length ?? 0) > 0);
  add(
    "rate limiter",
    config.instanceGroup?.some((group) => group.rateLimiter !== undefined),
  );
  add(
    "queue policy",
    batching?.defaultQueuePolicy !== undefined || Object.keys(batching?.priorityQueuePolicy ?? {}).length > 0,
  );
  add("priority", (batching?.priorityLevels ?? 0) > 0);
  add(
    "ragged batch",
    config.input?.some((input) => input.allowRaggedBatch),
  );
  add(
    "shape tensor",
    config.input?.some((input) => input.isShapeTensor),
  );
  add(
    "labels",
    config.output?.some((output) => output.labelFilename !== ""),
  );
  add("other backend", !playedBackends.includes(config.backend ?? "") && !features.has("ensemble"));
  return features;
}
