/** Latency metrics to collect, by the names of tritonserver's `--metrics-config`. */
export interface MetricsConfig {
  /** Sums of durations: `nv_inference_request_duration_us` and similar counters. @default true */
  readonly counterLatencies?: boolean;
  /** Histogram of the time to the first response: `nv_inference_first_response_histogram_ms`. @default false */
  readonly histogramLatencies?: boolean;
  /**
   * Summaries of durations over the last minute: `nv_inference_request_summary_us` and similar ones. They add about ten
   * microseconds to each request. @default false
   */
  readonly summaryLatencies?: boolean;
  /** Quantiles of the summaries, each between 0 and 1. @default [0.5, 0.9, 0.95, 0.99, 0.999] */
  readonly summaryQuantiles?: readonly number[];
}

/** The settings with all defaults filled in. */
export type ResolvedMetricsConfig = Required<MetricsConfig>;

/** Triton's defaults. */
export const DEFAULT_METRICS_CONFIG: ResolvedMetricsConfig = {
  counterLatencies: true,
  histogramLatencies: false,
  summaryLatencies: false,
  summaryQuantiles: [0.5, 0.9, 0.95, 0.99, 0.999],
};
