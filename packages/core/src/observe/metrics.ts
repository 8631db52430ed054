import type { Registry } from "prom-client";
import { CUT_REASONS } from "./cut-log.js";
import { promClient } from "./prom-client.js";
import { FAILURE_REASONS, type ModelStatistics } from "./statistics.js";

/** One served model version, as the metrics see it. */
export interface MeteredModel {
  /** `model`, `version`, and `_key` for each of the model's metric tags. */
  readonly labels: Readonly<Record<string, string>>;
  readonly statistics: ModelStatistics;
  /** Whether the model has a response cache. */
  readonly cached: boolean;
  /** Whether a batcher joins its requests. */
  readonly batched?: boolean;
}

type CounterRow = readonly [name: string, help: string, value: (statistics: ModelStatistics) => number];

/** Triton's counters by name, with its help texts. Durations are whole microseconds. */
const COUNTERS: readonly CounterRow[] = [
  [
    "nv_inference_request_success",
    "Number of successful inference requests, all batch sizes",
    (statistics) => statistics.success.count,
  ],
  [
    "nv_inference_count",
    "Number of inferences performed (does not include cached requests)",
    (statistics) => statistics.inferenceCount,
  ],
  [
    "nv_inference_exec_count",
    "Number of model executions performed (does not include cached requests)",
    (statistics) => statistics.executionCount,
  ],
];

/** The sums of latencies, which can be disabled. */
const LATENCY_COUNTERS: readonly CounterRow[] = [
  [
    "nv_inference_request_duration_us",
    "Cumulative inference request duration in microseconds (includes cached requests)",
    (statistics) => microseconds(statistics.success.ns),
  ],
  [
    "nv_inference_queue_duration_us",
    "Cumulative inference queuing duration in microseconds (includes cached requests)",
    (statistics) => microseconds(statistics.queue.ns),
  ],
  [
    "nv_inference_compute_input_duration_us",
    "Cumulative compute input duration in microseconds (does not include cached requests)",
    (statistics) => microseconds(statistics.computeInput.ns),
  ],
  [
    "nv_inference_compute_infer_duration_us",
    "Cumulative compute inference duration in microseconds (does not include cached requests)",
    (statistics) => microseconds(statistics.computeInfer.ns),
  ],
  [
    "nv_inference_compute_output_duration_us",
    "Cumulative inference compute output duration in microseconds (does not include cached requests)",
    (statistics) => microseconds(statistics.computeOutput.ns),
  ],
];

/** Counters of models with a response cache. Other models do not have these series. */
const CACHE_COUNTERS: readonly CounterRow[] = [
  [
    "nv_cache_num_hits_per_model",
    "Number of cache hits per model",
    (statistics) => statistics.cacheHit.count,
  ],
  [
    "nv_cache_num_misses_per_model",
    "Number of cache misses per model",
    (statistics) => statistics.cacheMiss.count,
  ],
  [
    "nv_cache_hit_duration_per_model",
    "Total cache hit duration per model, in microseconds",
    (statistics) => microseconds(statistics.cacheHit.ns),
  ],
  [
    "nv_cache_miss_duration_per_model",
    "Total cache miss (insert+lookup) duration per model, in microseconds",
    (statistics) => microseconds(statistics.cacheMiss.ns),
  ],
  [
    "tritonjs_cache_failure_total",
    "Number of lookups and insertions in which the response cache failed per model",
    (statistics) => statistics.cacheFailures,
  ],
];

/**
 * Adds the metric families of all models to a page. Statistics are plain numbers until a page is requested. The metric
 * families exist for one page only.
 *
 * @param counterLatencies whether to add the sums of latencies
 */
export function addModelMetrics(
  registry: Registry,
  models: readonly MeteredModel[],
  counterLatencies: boolean,
): void {
  if (models.length === 0) return;
  const { Counter, Gauge } = promClient();
  const registers = [registry];
  const labelNames = [...new Set(models.flatMap(({ labels }) => Object.keys(labels)))].sort();
  for (const [name, help, value] of counterLatencies ? [...COUNTERS, ...LATENCY_COUNTERS] : COUNTERS) {
    const counter = new Counter({ name, help, labelNames, registers });
    for (const { labels, statistics } of models) counter.inc(labels, value(statistics));
  }
  const cached = models.filter((model) => model.cached);
  for (const [name, help, value] of cached.length > 0 ? CACHE_COUNTERS : []) {
    const counter = new Counter({ name, help, labelNames, registers });
    for (const { labels, statistics } of cached) counter.inc(labels, value(statistics));
  }
  const batched = models.filter((model) => model.batched);
  if (batched.length > 0) addQueueMetrics(batched, labelNames, registers);
  const failures = new Counter({
    name: "nv_inference_request_failure",
    help: "Number of failed inference requests, all batch sizes",
    labelNames: [...labelNames, "reason"].sort(),
    registers,
  });
  const pending = new Gauge({
    name: "nv_inference_pending_request_count",
    help: "Instantaneous number of pending requests awaiting execution per-model.",
    labelNames,
    registers,
  });
  const load = new Gauge({
    name: "nv_model_load_duration_secs",
    help: "Model load time in seconds",
    labelNames,
    registers,
  });
  for (const { labels, statistics } of models) {
    for (const reason of FAILURE_REASONS) {
      failures.inc(byName({ ...labels, reason }), statistics.failures[reason]);
    }
    pending.set(labels, statistics.pendingCount);
    load.set(labels, statistics.loadDurationMs / 1000);
  }
}

/** Adds metrics of the queue of a batcher. They are specific to this library: Triton has none. */
function addQueueMetrics(
  models: readonly MeteredModel[],
  labelNames: readonly string[],
  registers: Registry[],
): void {
  const { Counter } = promClient();
  const cuts = new Counter({
    name: "tritonjs_batch_cut_total",
    help: "Number of batches that instances have taken, by the reason why they were cut",
    labelNames: [...labelNames, "reason"].sort(),
    registers,
  });
  const refused = new Counter({
    name: "tritonjs_request_refused_total",
    help: "Number of requests refused before they were queued: the queue was full, or they would have been late",
    labelNames,
    registers,
  });
  for (const { labels, statistics } of models) {
    for (const reason of CUT_REASONS) cuts.inc({ ...labels, reason }, statistics.cuts.counts[reason]);
    refused.inc(labels, statistics.refusedCount);
  }
}

function microseconds(ns: number): number {
  return Math.floor(ns / 1000);
}

/** Labels in the order in which Triton writes them. */
function byName(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
