import type { ModelConfig } from "../config/model-config.js";
import { LatencyMetrics } from "../observe/latency/latency-metrics.js";
import type { ResolvedMetricsConfig } from "../observe/latency/metrics-config.js";

/** Distributions of a model's latencies; undefined on a server that keeps none. */
export function createLatencies(
  config: ModelConfig,
  settings: ResolvedMetricsConfig,
): LatencyMetrics | undefined {
  if (!settings.histogramLatencies && !settings.summaryLatencies) return undefined;
  const control = config.modelMetrics?.metricControl.find(
    ({ metricIdentifier }) => metricIdentifier?.family === "nv_inference_first_response_histogram_ms",
  );
  const buckets = control?.histogramOptions?.buckets;
  return new LatencyMetrics(settings, config.responseCache?.enable === true, buckets);
}
