import type { ModelConfig, ModelMetricControl } from "@tritonjs/protocol";
import { backendProblems } from "../complete/backend-fields.js";
import { dynamicBatchingProblems } from "./validate-dynamic-batching.js";
import { ensembleProblems } from "./validate-ensemble.js";
import { responseCacheProblems } from "./validate-response-cache.js";
import { sequenceSchedulingProblems } from "./validate-sequence-batching.js";

/**
 * Lists the problems that Triton finds in a configuration before it looks at the model, with its texts and in its
 * order: backend, batching, sequences, ensemble, cache, metrics. Empty for a valid configuration.
 */
export function validateModelConfig(config: ModelConfig): string[] {
  const { name, maxBatchSize, dynamicBatching, sequenceBatching } = config;
  const problems = name === "" ? ["model configuration must specify 'name'"] : [];
  problems.push(...backendProblems(config));
  if (!Number.isInteger(maxBatchSize) || maxBatchSize < 0) {
    problems.push(`'max_batch_size' must be non-negative value for ${name}`);
  }
  if (dynamicBatching !== undefined) problems.push(...dynamicBatchingProblems(config, dynamicBatching));
  if (sequenceBatching !== undefined) problems.push(...sequenceSchedulingProblems(config, sequenceBatching));
  problems.push(...ensembleProblems(config));
  problems.push(...responseCacheProblems(config));
  problems.push(...(config.modelMetrics?.metricControl ?? []).flatMap(metricProblems));
  return problems;
}

function metricProblems({ metricIdentifier, histogramOptions }: ModelMetricControl): string[] {
  const problems: string[] = [];
  if (metricIdentifier === undefined) problems.push("metric control must specify 'metric_identifier'");
  else if (metricIdentifier.family === "") {
    problems.push("metric identifier must specify non-empty 'family'");
  }
  if (histogramOptions === undefined) problems.push("metric control must specify 'histogram_options'");
  else if (histogramOptions.buckets.length === 0) {
    problems.push("histogram options must specify non-empty 'buckets'");
  }
  return problems;
}
