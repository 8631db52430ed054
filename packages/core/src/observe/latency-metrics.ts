import type { ModelConfig } from "@tritonjs/protocol";
import type { Summary } from "prom-client";
import { LatencyHistogram, OCTAVE_BOUNDS_MS } from "./durations.js";
import { promClient } from "./metric-families.js";

/** The summaries by the last part of their names, in Triton's order. */
export const SUMMARIES = {
  request: [
    "nv_inference_request_summary_us",
    "Summary of inference request duration in microseconds (includes cached requests)",
  ],
  queue: [
    "nv_inference_queue_summary_us",
    "Summary of inference queuing duration in microseconds (includes cached requests)",
  ],
  computeInput: [
    "nv_inference_compute_input_summary_us",
    "Cumulative compute input duration in microseconds (does not include cached requests)",
  ],
  computeInfer: [
    "nv_inference_compute_infer_summary_us",
    "Cumulative compute inference duration in microseconds (does not include cached requests)",
  ],
  computeOutput: [
    "nv_inference_compute_output_summary_us",
    "Cumulative inference compute output duration in microseconds (does not include cached requests)",
  ],
  cacheHit: [
    "nv_cache_hit_summary_per_model",
    "Summary of cache hit counts/durations per model, in microseconds.",
  ],
  cacheMiss: [
    "nv_cache_miss_summary_per_model",
    "Summary of cache miss counts/durations per model, in microseconds.",
  ],
} as const;

/** The last part of the name of a summary. */
export type SummaryName = keyof typeof SUMMARIES;

/** Time window of a summary, as in tritonserver. */
const WINDOW = { maxAgeSeconds: 60, ageBuckets: 5 };

/** Upper bounds of the histogram of first responses, in milliseconds. */
const FIRST_RESPONSE_BOUNDS = [100, 500, 2000, 5000];

/**
 * Distributions of the latencies of one model, for servers that enable them. Each observation costs far more than a
 * counter, so they are off by default.
 */
export class LatencyMetrics {
  /** Time to the first response, in milliseconds. */
  readonly firstResponse: LatencyHistogram | undefined;
  readonly summaries = new Map<SummaryName, Summary>();

  /**
   * @param cached whether the model has a response cache; it then has cache summaries, but no request summary
   * @param bounds bounds of the histogram, if the model's configuration gives any
   */
  constructor(config: ResolvedMetricsConfig, cached: boolean, bounds: readonly number[] | undefined) {
    if (config.histogramLatencies) this.firstResponse = new LatencyHistogram(bounds ?? FIRST_RESPONSE_BOUNDS);
    if (!config.summaryLatencies) return;
    const { Summary } = promClient();
    const without: readonly SummaryName[] = cached ? ["request"] : ["cacheHit", "cacheMiss"];
    for (const key of Object.keys(SUMMARIES) as SummaryName[]) {
      if (without.includes(key)) continue;
      const [name, help] = SUMMARIES[key];
      const percentiles = [...config.summaryQuantiles];
      this.summaries.set(key, new Summary({ name, help, percentiles, ...WINDOW, registers: [] }));
    }
  }

  /** Observes an answered request. The sender of the first response observes its time. */
  answered(queueMs: number, totalMs: number, inputMs: number, inferMs: number, outputMs: number): void {
    this.#observe("request", totalMs);
    this.#observe("queue", queueMs);
    this.#observe("computeInput", inputMs);
    this.#observe("computeInfer", inferMs);
    this.#observe("computeOutput", outputMs);
  }

  /** Observes a request that the cache answered. */
  cacheHit(lookupMs: number, totalMs: number): void {
    this.firstResponse?.observe(totalMs);
    this.#observe("queue", totalMs - lookupMs);
    this.#observe("cacheHit", lookupMs);
  }

  cacheMiss(milliseconds: number): void {
    this.#observe("cacheMiss", milliseconds);
  }

  #observe(name: SummaryName, milliseconds: number): void {
    this.summaries.get(name)?.observe(Math.floor(Math.max(0, milliseconds) * 1000));
  }
}

/** Makes the distributions of a model's latencies. Undefined on a server that keeps none. */
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

/** Number of requests between two looks that makes quantiles precise enough. */
const ENOUGH = 1024;

/** Largest sampling stride. */
const MOST_SKIPPED = 1023;

/**
 * Latencies of a model's answered requests, counted while somebody watches them. Between two looks, the first requests
 * are all counted, and later ones more and more seldom. So the watch costs the same at any rate.
 */
export class LatencyWatch {
  /** From arrival to answer. */
  readonly request = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  /** From arrival to the start of the batch. */
  readonly queue = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  /** From the start of the batch to its end. */
  readonly compute = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  /** Every nth request is counted. n is odd, so that it meets every place of an even batch in turn. */
  #stride = 1;
  /** Requests up to the next one that is counted. */
  #left = 1;
  #countedSinceLook = 0;
  #answeredSinceLook = 0;

  add(queueMs: number, computeMs: number, requestMs: number): void {
    if (--this.#left > 0) return;
    this.#answeredSinceLook += this.#stride;
    this.#countedSinceLook++;
    // More requests than before the last look: the stride grows, so that the cost does not.
    if (this.#countedSinceLook % ENOUGH === 0) this.#stride = Math.min(MOST_SKIPPED, this.#stride * 4 + 1);
    this.#left = this.#stride;
    this.request.observe(requestMs);
    this.queue.observe(queueMs);
    this.compute.observe(computeMs);
  }

  /** Records that a viewer looks at the counts, and chooses which requests count until its next look. */
  looked(): void {
    this.#stride = Math.min(MOST_SKIPPED, Math.floor(this.#answeredSinceLook / ENOUGH) | 1);
    this.#left = Math.min(this.#left, this.#stride);
    this.#countedSinceLook = 0;
    this.#answeredSinceLook = 0;
  }
}
