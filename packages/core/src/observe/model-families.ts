import type { Duration } from "@tritonjs/protocol";
import type { ResolvedMetricsConfig } from "./metric-families.js";
import { type CollectedFamily, gauge, type Series } from "./metric-families.js";
import type { DeadlineClass, LatencyHistogram } from "./statistics.js";
import {
  CUT_REASONS,
  FAILURE_REASONS,
  type ModelStatistics,
  SUMMARIES,
  type SummaryName,
} from "./statistics.js";

export interface MeteredModel {
  /** `model`, `version`, and `_key` for each of the model's metric tags. */
  readonly labels: Readonly<Record<string, string>>;
  readonly statistics: ModelStatistics;
  readonly cached: boolean;
  readonly batched?: boolean;
  /** Number of requests accepted and not yet answered. */
  readonly inflightCount: number;
  /** Number of instances in service; undefined for an ensemble, whose steps have the instances. */
  readonly instanceCount?: number | undefined;
}

/** A metric of each model: its name, its help text, and its value. Triton's texts where Triton has the metric. */
type Row = readonly [name: string, help: string, value: (statistics: ModelStatistics) => number];

/** Whole microseconds of a duration. */
const microseconds = (duration: (statistics: ModelStatistics) => Duration) => (statistics: ModelStatistics) =>
  Math.floor(duration(statistics).ns / 1000);

const COUNTERS: readonly Row[] = [
  [
    "nv_inference_request_success",
    "Number of successful inference requests, all batch sizes",
    ({ success }) => success.count,
  ],
  [
    "nv_inference_count",
    "Number of inferences performed (does not include cached requests)",
    ({ inferenceCount }) => inferenceCount,
  ],
  [
    "nv_inference_exec_count",
    "Number of model executions performed (does not include cached requests)",
    ({ executionCount }) => executionCount,
  ],
];

const LATENCY_COUNTERS: readonly Row[] = [
  [
    "nv_inference_request_duration_us",
    "Cumulative inference request duration in microseconds (includes cached requests)",
    microseconds(({ success }) => success),
  ],
  [
    "nv_inference_queue_duration_us",
    "Cumulative inference queuing duration in microseconds (includes cached requests)",
    microseconds(({ queue }) => queue),
  ],
  [
    "nv_inference_compute_input_duration_us",
    "Cumulative compute input duration in microseconds (does not include cached requests)",
    microseconds(({ computeInput }) => computeInput),
  ],
  [
    "nv_inference_compute_infer_duration_us",
    "Cumulative compute inference duration in microseconds (does not include cached requests)",
    microseconds(({ computeInfer }) => computeInfer),
  ],
  [
    "nv_inference_compute_output_duration_us",
    "Cumulative inference compute output duration in microseconds (does not include cached requests)",
    microseconds(({ computeOutput }) => computeOutput),
  ],
];

/** Counters of models with a response cache. Other models do not have these series. */
const CACHE_COUNTERS: readonly Row[] = [
  ["nv_cache_num_hits_per_model", "Number of cache hits per model", ({ cacheHit }) => cacheHit.count],
  ["nv_cache_num_misses_per_model", "Number of cache misses per model", ({ cacheMiss }) => cacheMiss.count],
  [
    "nv_cache_hit_duration_per_model",
    "Total cache hit duration per model, in microseconds",
    microseconds(({ cacheHit }) => cacheHit),
  ],
  [
    "nv_cache_miss_duration_per_model",
    "Total cache miss (insert+lookup) duration per model, in microseconds",
    microseconds(({ cacheMiss }) => cacheMiss),
  ],
  [
    "tritonjs_cache_failure_total",
    "Number of lookups and insertions in which the response cache failed per model",
    ({ cacheFailures }) => cacheFailures,
  ],
];

const REFUSED: Row = [
  "tritonjs_request_refused_total",
  "Number of requests refused before they were queued: the queue was full, or they would have been late",
  ({ refusedCount }) => refusedCount,
];

const BUSY: Row = [
  "tritonjs_instance_busy_seconds_total",
  "Cumulative time that the instances of the model executed, in seconds",
  (statistics) => statistics.busyMs / 1000,
];

const RESTARTS: Row = [
  "tritonjs_instance_restarts_total",
  "Number of restarts of instances that crashed, failed attempts included",
  ({ restartCount }) => restartCount,
];

const GAUGES: readonly Row[] = [
  [
    "nv_inference_pending_request_count",
    "Instantaneous number of pending requests awaiting execution per-model.",
    ({ pendingCount }) => pendingCount,
  ],
  [
    "nv_model_load_duration_secs",
    "Model load time in seconds",
    ({ loadDurationMs }) => loadDurationMs / 1000,
  ],
];

export function modelFamilies(
  models: () => readonly MeteredModel[],
  { counterLatencies }: ResolvedMetricsConfig,
): CollectedFamily[] {
  const cached = () => models().filter((model) => model.cached);
  const batched = () => models().filter((model) => model.batched);
  const withInstances = () => models().filter(({ instanceCount }) => instanceCount !== undefined);
  return [
    ...COUNTERS.map((row) => family("counter", row, models)),
    ...(counterLatencies ? LATENCY_COUNTERS : []).map((row) => family("counter", row, models)),
    ...CACHE_COUNTERS.map((row) => family("counter", row, cached)),
    {
      name: "tritonjs_batch_cut_total",
      help: "Number of batches that instances have taken, by the reason why they were cut",
      type: "counter",
      collect: ofEach(batched, ({ labels, statistics }) =>
        CUT_REASONS.map((reason) => ({
          labels: { ...labels, reason },
          value: statistics.cuts.counts[reason],
        })),
      ),
    },
    {
      name: "tritonjs_deadline_total",
      help: "Number of requests with deadlines, by priority level, caller and what became of them",
      type: "counter",
      collect: () =>
        models().flatMap(({ labels, statistics }) =>
          (statistics.deadlines?.classes ?? []).flatMap((one) =>
            Object.entries(one.outcomes).map(([outcome, value]) => ({
              labels: { ...labels, ...classLabels(one), outcome },
              value,
            })),
          ),
        ),
    },
    {
      name: "tritonjs_deadline_missed_total",
      help: "Number of requests with deadlines that were late, or refused because they would be, by class and cause",
      type: "counter",
      collect: () =>
        models().flatMap(({ labels, statistics }) =>
          (statistics.deadlines?.classes ?? []).flatMap((one) =>
            Object.entries(one.causes).map(([cause, value]) => ({
              labels: { ...labels, ...classLabels(one), cause },
              value,
            })),
          ),
        ),
    },
    family("counter", REFUSED, batched),
    {
      name: "tritonjs_request_received_total",
      help: "Number of requests that the model was sent, whatever became of them: answered, failed, refused, under way",
      type: "counter",
      collect: () =>
        models().map(({ labels, inflightCount, statistics: { success, fail, refusedCount } }) => ({
          labels,
          value: success.count + fail.count + refusedCount + inflightCount,
        })),
    },
    family("counter", BUSY, withInstances),
    family("counter", RESTARTS, withInstances),
    {
      name: "tritonjs_instance_count",
      help: "Number of instances of the model that are in service",
      type: "gauge",
      collect: () =>
        withInstances().map(({ labels, instanceCount = 0 }) => ({ labels, value: instanceCount })),
    },
    {
      name: "nv_inference_request_failure",
      help: "Number of failed inference requests, all batch sizes",
      type: "counter",
      collect: ofEach(models, ({ labels, statistics }) =>
        FAILURE_REASONS.map((reason) => ({
          labels: sortedLabels({ ...labels, reason }),
          value: statistics.failures[reason],
        })),
      ),
    },
    ...GAUGES.map((row) => family("gauge", row, models)),
    // Triton's histogram is off by default, and its smallest bound is 100 milliseconds.
    histogram(
      "tritonjs_request_duration_seconds",
      "Time from the arrival of a successful request to its answer, in seconds (includes cached requests)",
      1000,
      models,
      ({ requestDurations }) => requestDurations,
    ),
    histogram(
      "tritonjs_queue_duration_seconds",
      "Time that a successful request waited before it was executed, in seconds (includes cached requests)",
      1000,
      models,
      ({ queueDurations }) => queueDurations,
    ),
  ];
}

/** Labels of a class of requests. Those without a caller have no label for it. */
function classLabels({ level, caller }: DeadlineClass): Readonly<Record<string, string>> {
  return { level: String(level), ...(caller !== "" && { caller }) };
}

function family(
  type: CollectedFamily["type"],
  [name, help, value]: Row,
  models: () => readonly MeteredModel[],
): CollectedFamily {
  const collect = () => models().map(({ labels, statistics }) => ({ labels, value: value(statistics) }));
  return { name, help, type, collect };
}

/** The series of one model after the other, so that a page of thousands of models can pause between them. */
function ofEach(
  models: () => readonly MeteredModel[],
  seriesOf: (model: MeteredModel) => readonly Series[],
): CollectedFamily["collect"] {
  return function* () {
    for (const model of models()) yield* seriesOf(model);
  };
}

/** Labels in the order in which Triton writes them. */
function sortedLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** @param unitMs milliseconds of the unit that the metric shows */
function histogram(
  name: string,
  help: string,
  unitMs: number,
  models: () => readonly MeteredModel[],
  durations: (statistics: ModelStatistics) => LatencyHistogram | undefined,
): CollectedFamily {
  const collect = ofEach(models, ({ labels, statistics }) => {
    const shown = durations(statistics);
    return shown === undefined ? [] : histogramSeries(name, labels, unitMs, shown);
  });
  return { name, help, type: "histogram", collect };
}

function histogramSeries(
  name: string,
  labels: Series["labels"],
  unitMs: number,
  durations: LatencyHistogram,
): Series[] {
  const { boundsMs, exemplars, sumMs } = durations;
  const counts = durations.cumulative();
  return [
    ...counts.map((value, index) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: index < boundsMs.length ? boundsMs[index]! / unitMs : "+Inf" },
      value,
      exemplar: exemplars[index],
    })),
    { metricName: `${name}_sum`, labels, value: sumMs / unitMs },
    { metricName: `${name}_count`, labels, value: counts.at(-1)! },
  ];
}

export function latencyFamilies(
  models: () => readonly MeteredModel[],
  { histogramLatencies, summaryLatencies }: ResolvedMetricsConfig,
): CollectedFamily[] {
  const summaries = (Object.keys(SUMMARIES) as SummaryName[]).map((key): CollectedFamily => {
    const [name, help] = SUMMARIES[key];
    const collect = async () =>
      (await Promise.all(models().map((model) => summarySeries(model, key)))).flat();
    return { name, help, type: "summary", collect };
  });
  const firstResponse = histogram(
    "nv_inference_first_response_histogram_ms",
    "Duration from request to first response in milliseconds",
    1,
    models,
    ({ latencies }) => latencies?.firstResponse,
  );
  return [...(summaryLatencies ? summaries : []), ...(histogramLatencies ? [firstResponse] : [])];
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

const CACHE_GAUGES: readonly (readonly [name: string, help: string, value: keyof CacheUsage])[] = [
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

export function cacheFamilies(usage: () => CacheUsage | undefined): CollectedFamily[] {
  return CACHE_GAUGES.map(([name, help, value]) => ({
    name,
    help,
    type: "gauge",
    collect: () => {
      const cache = usage();
      return cache === undefined ? [] : [{ labels: {}, value: cache[value] }];
    },
  }));
}

/** The cache of all models, as the metrics see it. */
export interface MeteredCache {
  readonly isSuspended: boolean;
  readonly skipped: number;
}

/** Metric families of lookups in a cache that may hang. They are specific to this library. */
export function cacheGuardFamilies(cache: MeteredCache): CollectedFamily[] {
  return [
    gauge(
      "tritonjs_cache_suspended",
      "1 while requests run without the response cache, because it did not answer in time",
      () => (cache.isSuspended ? 1 : 0),
    ),
    {
      name: "tritonjs_cache_skipped_total",
      help: "Number of lookups that were not made, because the response cache did not answer in time",
      type: "counter",
      collect: () => [{ labels: {}, value: cache.skipped }],
    },
  ];
}

/** Metric family of traces. It is specific to this library. */
export function traceFamilies(tracing: { readonly lost: number }): CollectedFamily[] {
  return [
    {
      name: "tritonjs_trace_lost_total",
      help: "Number of traces and spans that were lost, because the disk or the collector was slower than tracing",
      type: "counter",
      collect: () => [{ labels: {}, value: tracing.lost }],
    },
  ];
}
