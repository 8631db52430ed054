import type { ModelConfig } from "@tritonjs/protocol";
import type { Summary } from "prom-client";
import type { ComputeTimes, ExecutionTimes } from "../duration.js";
import { promClient } from "../prom-client.js";
import type { ResolvedMetricsConfig } from "./metrics-config.js";

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

  /** Observes a request that a model answered. The sender of the first response observes its time. */
  success(queueStart: number, times: ExecutionTimes): void {
    this.#observe("request", times.end - queueStart);
    this.#observe("queue", times.start - queueStart);
    this.#observe("computeInput", times.inputEnd - times.start);
    this.#observe("computeInfer", times.inferEnd - times.inputEnd);
    this.#observe("computeOutput", times.end - times.inferEnd);
  }

  /** Observes a request that an ensemble answered. */
  ensemble(queueMs: number, totalMs: number, { inputMs, inferMs, outputMs }: ComputeTimes): void {
    this.firstResponse?.observe(totalMs);
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

/** Counts of observations by upper bounds. */
class LatencyHistogram {
  sum = 0;
  count = 0;
  readonly bounds: readonly number[];
  readonly #counts: number[];

  /** @param bounds upper bounds, ascending */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.sum += value;
    this.count++;
    const index = this.bounds.findIndex((bound) => value <= bound);
    if (index >= 0) this.#counts[index]!++;
  }

  /** Numbers of observations up to each bound. */
  cumulative(): number[] {
    let total = 0;
    return this.#counts.map((count) => {
      total += count;
      return total;
    });
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
