import type { ParsedConfig } from "./config-text.js";

/** Properties that decide how a recorded model is played. */
export type ModelFeature = "decoupled" | "ensemble";

/** The features of a model with this configuration. */
export function featuresOf(config: ParsedConfig): Set<ModelFeature> {
  const features = new Set<ModelFeature>();
  if (config.modelTransactionPolicy?.decoupled) features.add("decoupled");
  if (config.ensembleScheduling !== undefined) features.add("ensemble");
  return features;
}
