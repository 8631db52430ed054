import { DURATION_BOUNDS, type DurationHistogram } from "./durations.js";
import {
  type LatencyMetrics,
  type ResolvedMetricsConfig,
  SUMMARIES,
  type SummaryName,
} from "./latency-metrics.js";
import type { CollectedFamily, Series } from "./metric-families.js";
import { CUT_REASONS, FAILURE_REASONS, type ModelStatistics } from "./statistics.js";

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

/**
 * Histograms of durations, which every model has. They are specific to this library: Triton's histogram is off by
 * default, and its smallest bound is 100 milliseconds.
 */
export function durationFamilies(models: () => readonly MeteredModel[]): CollectedFamily[] {
  return [
    durationFamily(
      "tritonjs_request_duration_seconds",
      "Time from the arrival of a successful request to its answer, in seconds (includes cached requests)",
      models,
      ({ statistics }) => statistics.requestDurations,
    ),
    durationFamily(
      "tritonjs_queue_duration_seconds",
      "Time that a successful request waited before it was executed, in seconds (includes cached requests)",
      models,
      ({ statistics }) => statistics.queueDurations,
    ),
  ];
}

function durationFamily(
  name: string,
  help: string,
  models: () => readonly MeteredModel[],
  durations: (model: MeteredModel) => DurationHistogram,
): CollectedFamily {
  const collect = () => models().flatMap((model) => series(name, model.labels, durations(model)));
  return { name, help, type: "histogram", collect };
}

function series(name: string, labels: Series["labels"], durations: DurationHistogram): Series[] {
  const counts = durations.cumulative();
  const { exemplars } = durations;
  return [
    ...counts.map((value, index) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: DURATION_BOUNDS[index] ?? "+Inf" },
      value,
      exemplar: exemplars[index],
    })),
    { metricName: `${name}_sum`, labels, value: durations.sumMs / 1000 },
    { metricName: `${name}_count`, labels, value: counts.at(-1)! },
  ];
}

const FIRST_RESPONSE = "nv_inference_first_response_histogram_ms";

/** The metric families of the latencies' distributions that the server keeps. */
export function latencyFamilies(
  models: () => readonly MeteredModel[],
  { histogramLatencies, summaryLatencies }: ResolvedMetricsConfig,
): CollectedFamily[] {
  return [
    ...(summaryLatencies ? summaryFamilies(models) : []),
    ...(histogramLatencies ? [firstResponseFamily(models)] : []),
  ];
}

function summaryFamilies(models: () => readonly MeteredModel[]): CollectedFamily[] {
  return (Object.keys(SUMMARIES) as SummaryName[]).map((key) => {
    const [name, help] = SUMMARIES[key];
    const collect = async () =>
      (await Promise.all(models().map((model) => summarySeries(model, key)))).flat();
    return { name, help, type: "summary", collect };
  });
}

/** A summary without an observation has quantiles that are not a number, as in Triton. */
async function summarySeries({ labels, statistics }: MeteredModel, key: SummaryName): Promise<Series[]> {
  const summary = statistics.latencies?.summaries.get(key);
  if (summary === undefined) return [];
  const { name, values } = await summary.get();
  const isEmpty = values.some(({ metricName, value }) => metricName === `${name}_count` && value === 0);
  return values.map(({ metricName = name, labels: own, value }) => ({
    metricName,
    labels: { ...labels, ...(own as Series["labels"]) },
    value: isEmpty && metricName === name ? Number.NaN : value,
  }));
}

function firstResponseFamily(models: () => readonly MeteredModel[]): CollectedFamily {
  return {
    name: FIRST_RESPONSE,
    help: "Duration from request to first response in milliseconds",
    type: "histogram",
    collect: () =>
      models().flatMap(({ labels, statistics }) => firstResponseSeries(labels, statistics.latencies)),
  };
}

function firstResponseSeries(labels: Series["labels"], latencies: LatencyMetrics | undefined): Series[] {
  const { firstResponse } = latencies ?? {};
  if (firstResponse === undefined) return [];
  const bucket = (le: number | string, value: number) => ({
    metricName: `${FIRST_RESPONSE}_bucket`,
    labels: { ...labels, le },
    value,
  });
  return [
    ...firstResponse.cumulative().map((count, index) => bucket(firstResponse.bounds[index]!, count)),
    bucket("+Inf", firstResponse.count),
    { metricName: `${FIRST_RESPONSE}_sum`, labels, value: firstResponse.sum },
    { metricName: `${FIRST_RESPONSE}_count`, labels, value: firstResponse.count },
  ];
}

/** Usage of a whole cache, since it was made. */
export interface CacheUsage {
  /** Share of its capacity that is in use, from 0 to 1. */
  readonly utilization: number;
  readonly entries: number;
  readonly lookups: number;
  readonly hits: number;
  readonly misses: number;
  /** Entries that were removed for lack of room. */
  readonly evictions: number;
  readonly lookupMicroseconds: number;
  readonly insertionMicroseconds: number;
}

type GaugeRow = readonly [name: string, help: string, value: keyof CacheUsage];

/** Triton's gauges by name, with its help texts. */
const GAUGES: readonly GaugeRow[] = [
  ["nv_cache_util", "Cache utilization [0.0 - 1.0]", "utilization"],
  ["nv_cache_num_entries", "Number of responses stored in response cache", "entries"],
  ["nv_cache_num_hits", "Number of cache hits in response cache", "hits"],
  ["nv_cache_num_misses", "Number of cache misses in response cache", "misses"],
  ["nv_cache_num_lookups", "Number of cache lookups in response cache", "lookups"],
  ["nv_cache_num_evictions", "Number of cache evictions in response cache", "evictions"],
  [
    "nv_cache_lookup_duration",
    "Total cache lookup duration (hit and miss), in microseconds",
    "lookupMicroseconds",
  ],
  ["nv_cache_insertion_duration", "Total cache insertion duration, in microseconds", "insertionMicroseconds"],
];

/** The metric families of the whole cache. */
export function cacheFamilies(usage: () => CacheUsage | undefined): CollectedFamily[] {
  return GAUGES.map(([name, help, value]) => ({
    name,
    help,
    type: "gauge",
    collect: () => {
      const cache = usage();
      return cache === undefined ? [] : [{ labels: {}, value: cache[value] }];
    },
  }));
}
