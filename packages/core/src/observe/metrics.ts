import type { CollectedFamily } from "./collected-family.js";
import { CUT_REASONS } from "./cut-log.js";
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
 * The metric families of all models. Statistics are plain numbers, which a scrape reads.
 *
 * @param models the models in service at the time of a scrape
 * @param counterLatencies whether to collect the sums of latencies
 */
export function modelFamilies(
  models: () => readonly MeteredModel[],
  counterLatencies: boolean,
): CollectedFamily[] {
  const counters = counterLatencies ? [...COUNTERS, ...LATENCY_COUNTERS] : COUNTERS;
  const withCache = () => models().filter((model) => model.cached);
  const gauge = (name: string, help: string, value: (statistics: ModelStatistics) => number) =>
    family("gauge", [name, help, value], models);
  return [
    ...counters.map((row) => family("counter", row, models)),
    ...CACHE_COUNTERS.map((row) => family("counter", row, withCache)),
    ...queueFamilies(() => models().filter((model) => model.batched)),
    {
      name: "nv_inference_request_failure",
      help: "Number of failed inference requests, all batch sizes",
      type: "counter",
      collect: () =>
        models().flatMap(({ labels, statistics }) =>
          FAILURE_REASONS.map((reason) => ({
            labels: byName({ ...labels, reason }),
            value: statistics.failures[reason],
          })),
        ),
    },
    gauge(
      "nv_inference_pending_request_count",
      "Instantaneous number of pending requests awaiting execution per-model.",
      (statistics) => statistics.pendingCount,
    ),
    gauge(
      "nv_model_load_duration_secs",
      "Model load time in seconds",
      (statistics) => statistics.loadDurationMs / 1000,
    ),
  ];
}

function family(
  type: CollectedFamily["type"],
  [name, help, value]: CounterRow,
  models: () => readonly MeteredModel[],
): CollectedFamily {
  const collect = () => models().map(({ labels, statistics }) => ({ labels, value: value(statistics) }));
  return { name, help, type, collect };
}

/** Metrics of the queue of a batcher. They are specific to this library: Triton has none. */
function queueFamilies(models: () => readonly MeteredModel[]): CollectedFamily[] {
  return [
    {
      name: "tritonjs_batch_cut_total",
      help: "Number of batches that instances have taken, by the reason why they were cut",
      type: "counter",
      collect: () =>
        models().flatMap(({ labels, statistics }) =>
          CUT_REASONS.map((reason) => ({
            labels: { ...labels, reason },
            value: statistics.cuts.counts[reason],
          })),
        ),
    },
    family(
      "counter",
      [
        "tritonjs_request_refused_total",
        "Number of requests refused before they were queued: the queue was full, or they would have been late",
        (statistics) => statistics.refusedCount,
      ],
      models,
    ),
  ];
}

function microseconds(ns: number): number {
  return Math.floor(ns / 1000);
}

/** Labels in the order in which Triton writes them. */
function byName(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
