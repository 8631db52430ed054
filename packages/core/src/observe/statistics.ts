import type { Duration, ErrorCode, ModelConfig, ResponseStatistics, TritonError } from "@tritonjs/protocol";
import type { Summary } from "prom-client";
import { getOrAdd } from "../system/collections.js";
import { type Exemplar, promClient, type ResolvedMetricsConfig } from "./metric-families.js";

function zeroDuration(): Duration {
  return { count: 0, ns: 0 };
}

/** Adds one event. Its time is never negative, whatever the clock did. */
function addTo(duration: Duration, milliseconds: number): void {
  duration.count++;
  duration.ns += Math.max(0, Math.round(milliseconds * 1e6));
}

/** Times of one execution, in milliseconds on the model's clock. */
export interface ExecutionTimes {
  /** When the instance took the batch. */
  start: number;
  /** When the inputs were ready for the model. */
  inputEnd: number;
  /** When the model had its outputs. */
  inferEnd: number;
  /** When the outputs were split and checked. */
  end: number;
}

/** Times of computing one answer, in milliseconds. They are the times of its whole batch. */
export interface ComputeTimes {
  readonly inputMs: number;
  readonly inferMs: number;
  readonly outputMs: number;
}

/** Upper bounds in milliseconds: from a quick model without a queue to a client deadline of 10 s. */
const DURATION_BOUNDS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] as const;

/** Buckets for each doubling of the time: the width of a bucket is 9% of its time. */
const PER_OCTAVE = 8;

/** Doublings from a microsecond to 134 seconds. */
const OCTAVES = 27;

/** Bounds of equal ratio, with which quantiles are read to within 9%. */
export const OCTAVE_BOUNDS_MS = Float64Array.from(
  { length: PER_OCTAVE * OCTAVES - 1 },
  (_, i) => 2 ** ((i + 1) / PER_OCTAVE) / 1000,
);

/** Numbers of durations by upper bounds. Observing a duration takes some nanoseconds. */
export class LatencyHistogram {
  sumMs = 0;
  #lastBucket = 0;
  /** Durations of each bound alone, and of those above all. */
  readonly #counts: Float64Array;
  #exemplars: (Exemplar | undefined)[] | undefined;

  constructor(
    readonly boundsMs: ArrayLike<number>,
    counts = new Float64Array(boundsMs.length + 1),
  ) {
    this.#counts = counts;
  }

  observe(milliseconds: number): void {
    this.sumMs += Math.max(0, milliseconds);
    this.#counts[this.#bucketOf(milliseconds)]!++;
  }

  /**
   * Remembers a traced request as an example of requests that took as long.
   *
   * @param wallMs milliseconds since 1970
   */
  exemplify(milliseconds: number, traceId: string, wallMs: number): void {
    this.#exemplars ??= [];
    this.#exemplars[this.#bucketOf(milliseconds)] = {
      labelSet: { trace_id: traceId },
      value: Math.max(0, milliseconds) / 1000,
      timestamp: wallMs / 1000,
    };
  }

  /** The last example of each bound, and of those above all. */
  get exemplars(): readonly (Exemplar | undefined)[] {
    return this.#exemplars ?? [];
  }

  /** Numbers of durations up to each bound, and of all. */
  cumulative(): number[] {
    let total = 0;
    return Array.from(this.#counts, (count) => {
      total += count;
      return total;
    });
  }

  get total(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Numbers of durations by bucket, to be kept. */
  counts(): number[] {
    return [...this.#counts];
  }

  /** Takes numbers that {@link counts} has returned. */
  restore(counts: readonly number[]): void {
    if (counts.length === this.#counts.length) this.#counts.set(counts);
  }

  copy(): LatencyHistogram {
    return new LatencyHistogram(this.boundsMs, this.#counts.slice());
  }

  /** The durations that were observed after `earlier`, a copy of this histogram. */
  since(earlier: LatencyHistogram): LatencyHistogram {
    return new LatencyHistogram(
      this.boundsMs,
      this.#counts.map((count, i) => count - earlier.#counts[i]!),
    );
  }

  /**
   * The duration in milliseconds below which a share of all durations lies: the middle of its octave's bucket. For
   * {@link OCTAVE_BOUNDS_MS} only.
   *
   * @param share between 0 and 1
   * @returns undefined without durations
   */
  quantile(share: number): number | undefined {
    const { total } = this;
    if (total === 0) return undefined;
    const wanted = Math.max(1, Math.ceil(total * share));
    const bucket = this.cumulative().findIndex((seen) => seen >= wanted);
    return 2 ** ((bucket + 0.5) / PER_OCTAVE) / 1000;
  }

  /** Index of the first bound that is not below the duration. */
  #bucketOf(milliseconds: number): number {
    const { boundsMs } = this;
    let low = 0;
    let high = boundsMs.length;
    // The requests of a batch take about as long as each other.
    const last = this.#lastBucket;
    if (last < high && milliseconds <= boundsMs[last]!) {
      if (last === 0 || milliseconds > boundsMs[last - 1]!) return last;
      high = last;
    }
    while (low < high) {
      const middle = (low + high) >> 1;
      if (milliseconds <= boundsMs[middle]!) high = middle;
      else low = middle + 1;
    }
    this.#lastBucket = low;
    return low;
  }
}

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

/** Distributions of a model's latencies. Off by default, because an observation costs far more than a counter. */
class LatencyMetrics {
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

/** Number of requests between two looks that makes quantiles precise enough. */
const ENOUGH = 1024;

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

/** Why a request failed: a label of the metrics. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER";

const NO_FAILURES: Readonly<Record<FailureReason, number>> = {
  REJECTED: 0,
  CANCELED: 0,
  BACKEND: 0,
  OTHER: 0,
};

export const FAILURE_REASONS = Object.keys(NO_FAILURES) as FailureReason[];

interface BatchStatistics {
  readonly computeInput: Duration;
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
}

/** Counters of one model version by Triton's rules: plain numbers, which become messages and metrics on demand. */
export class ModelStatistics {
  /** Wall time of the last inference, in milliseconds since 1970; 0 for none. */
  lastInference = 0;
  /** Number of rows of successful requests. A request without a batch axis counts as one row. */
  inferenceCount = 0;
  /** Number of executions of the model, including failed ones. */
  executionCount = 0;
  /** Time that loading took, in milliseconds. */
  loadDurationMs = 0;
  /** Number of requests that are accepted but not yet taken by an instance. */
  pendingCount = 0;
  readonly success = zeroDuration();
  readonly fail = zeroDuration();
  readonly queue = zeroDuration();
  readonly computeInput = zeroDuration();
  readonly computeInfer = zeroDuration();
  readonly computeOutput = zeroDuration();
  readonly cacheHit = zeroDuration();
  readonly cacheMiss = zeroDuration();
  /** Number of look-ups and insertions in which the response cache itself failed. */
  cacheFailures = 0;
  readonly failures = { ...NO_FAILURES };
  /** Number of requests refused on arrival with UNAVAILABLE, for lack of room or time. Triton does not count them. */
  refusedCount = 0;
  /** Number of restarts of instances that crashed, with attempts that failed. */
  restartCount = 0;
  /** Why the batches of a batcher were cut. */
  readonly cuts = new CutLog();
  /** Outcomes of requests with deadlines, by class; undefined while there were none. */
  deadlines: DeadlineCounts | undefined;
  readonly batches = new Map<number, BatchStatistics>();
  /** Counters of single responses, for decoupled models. */
  readonly responses = new ResponseLog();
  /** From the arrival of each answered request to its answer. */
  readonly requestDurations = new LatencyHistogram(DURATION_BOUNDS_MS);
  /** From the arrival of each answered request to its execution, or to the look-up in the cache. */
  readonly queueDurations = new LatencyHistogram(DURATION_BOUNDS_MS);
  /** Distributions of latencies, on servers that keep them. */
  latencies: LatencyMetrics | undefined;
  /** Latencies for a viewer; set while there is one. */
  watch: LatencyWatch | undefined;
  /** Texts of the last failures and refusals. */
  readonly errors = new ErrorLog();

  /** Begins anew, as for a version that is loaded again. Requests that wait still count. */
  restart(): void {
    const { pendingCount, latencies, watch } = this;
    Object.assign(this, new ModelStatistics(), { pendingCount, latencies, watch });
  }

  /** Milliseconds that instances executed. */
  get busyMs(): number {
    let ns = 0;
    for (const { computeInput, computeInfer, computeOutput } of this.batches.values())
      ns += computeInput.ns + computeInfer.ns + computeOutput.ns;
    return ns / 1e6;
  }

  /** Counts one execution of a batch of `batchSize` rows. */
  recordExecution(batchSize: number, times: ExecutionTimes, wallNow: number): void {
    this.executionCount++;
    this.lastInference = Math.floor(wallNow);
    let batch = this.batches.get(batchSize);
    if (batch === undefined) {
      batch = { computeInput: zeroDuration(), computeInfer: zeroDuration(), computeOutput: zeroDuration() };
      this.batches.set(batchSize, batch);
    }
    addTo(batch.computeInput, times.inputEnd - times.start);
    addTo(batch.computeInfer, times.inferEnd - times.inputEnd);
    addTo(batch.computeOutput, times.end - times.inferEnd);
  }

  /** Counts one answered request of a batch. Its compute times are those of the whole batch. */
  recordSuccess(rows: number, queueStart: number, { start, inputEnd, inferEnd, end }: ExecutionTimes): void {
    this.#computed(
      rows,
      start - queueStart,
      end - queueStart,
      inputEnd - start,
      inferEnd - inputEnd,
      end - inferEnd,
    );
  }

  /** Counts an answered request of an ensemble and an execution of it, with the summed compute times of the steps. */
  recordEnsemble(
    rows: number,
    queueMs: number,
    totalMs: number,
    { inputMs, inferMs, outputMs }: ComputeTimes,
    wallNow: number,
  ): void {
    const inferEnd = inputMs + inferMs;
    this.recordExecution(rows, { start: 0, inputEnd: inputMs, inferEnd, end: inferEnd + outputMs }, wallNow);
    this.#computed(rows, queueMs, totalMs, inputMs, inferMs, outputMs);
    this.latencies?.firstResponse?.observe(totalMs);
  }

  /** Counts one request that the response cache answered. */
  recordCacheHit(lookupMs: number, totalMs: number, wallNow: number): void {
    this.lastInference = Math.floor(wallNow);
    addTo(this.cacheHit, lookupMs);
    this.#answered(totalMs - lookupMs, lookupMs, totalMs);
    this.latencies?.cacheHit(lookupMs, totalMs);
  }

  #computed(
    rows: number,
    queueMs: number,
    totalMs: number,
    inputMs: number,
    inferMs: number,
    outputMs: number,
  ): void {
    this.inferenceCount += rows;
    addTo(this.computeInput, inputMs);
    addTo(this.computeInfer, inferMs);
    addTo(this.computeOutput, outputMs);
    this.#answered(queueMs, inputMs + inferMs + outputMs, totalMs);
    this.latencies?.answered(queueMs, totalMs, inputMs, inferMs, outputMs);
  }

  #answered(queueMs: number, computeMs: number, totalMs: number): void {
    addTo(this.success, totalMs);
    addTo(this.queue, queueMs);
    this.requestDurations.observe(totalMs);
    this.queueDurations.observe(queueMs);
    this.watch?.add(queueMs, computeMs, totalMs);
  }

  /** Counts one cache miss whose response has been inserted since. The time includes the look-up and the insertion. */
  recordCacheMiss(milliseconds: number): void {
    addTo(this.cacheMiss, milliseconds);
    this.latencies?.cacheMiss(milliseconds);
  }

  /** Counts one request that failed after it was accepted. */
  recordFailure(reason: FailureReason, durationMs: number): void {
    this.failures[reason]++;
    addTo(this.fail, durationMs);
  }
}

/**
 * Why a batch has exactly its requests:
 *
 * | reason | |
 * |---|---|
 * | `SIZE` | it has the maximum size, or the next request would exceed it |
 * | `PREFERRED` | it was cut at a preferred size |
 * | `DELAY` | its oldest request has waited for the whole queue delay |
 * | `SHAPE` | the next request has other shapes, another shape tensor, or another set of inputs |
 * | `COST` | it has the maximum cost, or the next request would exceed it |
 * | `POLICY` | adaptive batching decided that waiting does not pay |
 * | `INSTANCE` | an instance took all requests that were available: no other request was waiting |
 * | `FLUSH` | the model stops or unloads, so no request waits for others any more |
 */
export type CutReason = "SIZE" | "PREFERRED" | "DELAY" | "SHAPE" | "COST" | "POLICY" | "INSTANCE" | "FLUSH";

const NO_CUTS: Readonly<Record<CutReason, number>> = {
  SIZE: 0,
  PREFERRED: 0,
  DELAY: 0,
  SHAPE: 0,
  COST: 0,
  POLICY: 0,
  INSTANCE: 0,
  FLUSH: 0,
};

export const CUT_REASONS = Object.keys(NO_CUTS) as CutReason[];

/** One batch that an instance has taken. */
export interface Cut {
  readonly reason: CutReason;
  /** Rows of the batch. */
  readonly batchSize: number;
}

/** Number of recent batches that are kept one by one. */
const REMEMBERED_CUTS = 16;

/** Why batches were cut: a count for each reason, and the last batches. Counting a batch allocates nothing. */
class CutLog {
  readonly counts = { ...NO_CUTS };
  readonly #reasons: CutReason[] = new Array<CutReason>(REMEMBERED_CUTS).fill("SIZE");
  readonly #batchSizes = new Uint32Array(REMEMBERED_CUTS);
  #total = 0;

  record(reason: CutReason, batchSize: number): void {
    this.counts[reason]++;
    const place = this.#total++ % REMEMBERED_CUTS;
    this.#reasons[place] = reason;
    this.#batchSizes[place] = batchSize;
  }

  /** The last batches, latest first. */
  get recent(): Cut[] {
    const cuts: Cut[] = [];
    for (let i = this.#total - 1; i >= 0 && cuts.length < REMEMBERED_CUTS; i--) {
      const place = i % REMEMBERED_CUTS;
      cuts.push({ reason: this.#reasons[place]!, batchSize: this.#batchSizes[place]! });
    }
    return cuts;
  }
}

/**
 * Outcome of a request with a deadline.
 *
 * | outcome | meaning |
 * |---|---|
 * | `in_time` | it was answered before its deadline |
 * | `late` | it ran, and its deadline passed before the answer |
 * | `hopeless` | it was refused, because its answer would have been late |
 * | `expired` | its deadline passed while it waited |
 * | `queue_full` | it was refused by a full queue |
 */
export type DeadlineOutcome = "in_time" | "late" | "hopeless" | "expired" | "queue_full";

const NO_OUTCOMES: Readonly<Record<DeadlineOutcome, number>> = {
  in_time: 0,
  late: 0,
  hopeless: 0,
  expired: 0,
  queue_full: 0,
};

/**
 * Why a request with a deadline is late, or refused because it would be:
 *
 * - `queue`: it waited for others of its class.
 * - `batch`: its batch, or the one that it waited for, was too large for it.
 * - `other_class`: it waited for requests of other callers or priorities.
 * - `other_model`: it waited while no instance of its model was busy, because other models had their resources.
 * - `overload`: more arrived than the instances can do.
 * - `cold`: too little was known of the model's times.
 * - `slow_model`: a batch took longer than expected, or the limit is shorter than a batch of one.
 */
export type LateCause =
  | "queue"
  | "batch"
  | "other_class"
  | "other_model"
  | "overload"
  | "cold"
  | "slow_model";

/** Outcomes of the requests with deadlines of a class: a priority level and a caller. */
export interface DeadlineClass {
  readonly level: number;
  /** Empty for requests without a caller, `(others)` for the callers beyond the first 64 of a level. */
  readonly caller: string;
  readonly outcomes: Readonly<Record<DeadlineOutcome, number>>;
  /** Numbers of the requests that were late, hopeless or expired, by cause. */
  readonly causes: Readonly<Partial<Record<LateCause, number>>>;
}

/** Longest name of a caller that is kept, in characters. */
const LONGEST_NAME = 128;
/** Callers of a level that are counted by name, because clients choose their names. */
const NAMED_CALLERS = 64;
const OTHER_CALLERS = "(others)";
/** Largest number of levels that are counted by themselves. Clients choose them where the model has no levels. */
const COUNTED_LEVELS = 64;
/** Level under which requests of all further levels are counted. */
const OTHER_LEVELS = 0;

/** Counts what became of requests with deadlines, by class. */
export class DeadlineCounts {
  readonly #levels = new Map<number, Map<string, CountedClass>>();

  record(level: number, caller: string, outcome: DeadlineOutcome, cause?: LateCause): void {
    const isCounted = this.#levels.size < COUNTED_LEVELS || this.#levels.has(level);
    const callers = getOrAdd(
      this.#levels,
      isCounted ? level : OTHER_LEVELS,
      () => new Map<string, CountedClass>(),
    );
    const name = caller.slice(0, LONGEST_NAME);
    const isNamed = callers.size < NAMED_CALLERS || callers.has(name);
    const { outcomes, causes } = getOrAdd(callers, isNamed ? name : OTHER_CALLERS, newClass);
    outcomes[outcome]++;
    if (cause !== undefined) causes[cause] = (causes[cause] ?? 0) + 1;
  }

  /** All classes: lowest level first, then in the order in which their callers came. */
  get classes(): DeadlineClass[] {
    return [...this.#levels]
      .sort(([a], [b]) => a - b)
      .flatMap(([level, callers]) =>
        Array.from(callers, ([caller, { outcomes, causes }]) => ({
          level,
          caller,
          outcomes: { ...outcomes },
          causes: { ...causes },
        })),
      );
  }
}

interface CountedClass {
  readonly outcomes: Record<DeadlineOutcome, number>;
  readonly causes: Partial<Record<LateCause, number>>;
}

function newClass(): CountedClass {
  return { outcomes: { ...NO_OUTCOMES }, causes: {} };
}

/** Number of responses of one request that are counted, because a stream may have any number of them. */
const KEPT_RESPONSES = 1024;

/**
 * Counters of the responses of a decoupled model, by the index of a response within its request. The time of a response
 * starts at the previous one. The time of the first one starts when the model had its inputs.
 */
export class ResponseLog {
  readonly byIndex: ResponseStatistics[] = [];

  /** @param inferMs time until the model returned the response */
  success(index: number, inferMs: number, outputMs: number): void {
    const at = this.#at(index);
    if (at === undefined) return;
    addTo(at.computeInfer, inferMs);
    addTo(at.computeOutput, outputMs);
    addTo(at.success, inferMs + outputMs);
  }

  fail(index: number, inferMs: number): void {
    const at = this.#at(index);
    if (at === undefined) return;
    addTo(at.computeInfer, inferMs);
    addTo(at.fail, inferMs);
  }

  empty(index: number, inferMs: number): void {
    const at = this.#at(index);
    if (at === undefined) return;
    addTo(at.computeInfer, inferMs);
    addTo(at.emptyResponse, inferMs);
  }

  cancel(index: number, inferMs: number): void {
    const at = this.#at(index);
    if (at !== undefined) addTo(at.cancel, inferMs);
  }

  #at(index: number): ResponseStatistics | undefined {
    if (index >= KEPT_RESPONSES) return undefined;
    while (this.byIndex.length <= index) this.byIndex.push(noResponses());
    return this.byIndex[index];
  }
}

function noResponses(): ResponseStatistics {
  return {
    computeInfer: zeroDuration(),
    computeOutput: zeroDuration(),
    success: zeroDuration(),
    fail: zeroDuration(),
    emptyResponse: zeroDuration(),
    cancel: zeroDuration(),
  };
}

/** A failure of one or several requests of a model with the same text. */
export interface FailureNote {
  /** Wall time of the last of these failures, in milliseconds since 1970. */
  readonly at: number;
  readonly code: ErrorCode;
  /** The error's message; long ones are cut to 500 characters. */
  readonly message: string;
  /** Failures in a row, or nearly so, with this code and message. */
  readonly count: number;
}

/** Number of different failures that a model remembers. */
const REMEMBERED_ERRORS = 16;

const LONGEST_MESSAGE = 500;

/** The last failures of a model, with their texts. Equal failures share an entry, so a flood of one hides no other. */
export class ErrorLog {
  #notes: FailureNote[] = [];

  /** @param wallNow milliseconds since 1970 */
  record({ code, message: whole }: TritonError, wallNow: number): void {
    const message = whole.length > LONGEST_MESSAGE ? `${whole.slice(0, LONGEST_MESSAGE - 1)}…` : whole;
    const same = this.#notes.findIndex((note) => note.message === message && note.code === code);
    const count = same < 0 ? 1 : this.#notes[same]!.count + 1;
    if (same >= 0) this.#notes.splice(same, 1);
    else if (this.#notes.length === REMEMBERED_ERRORS) this.#notes.pop();
    this.#notes.unshift({ at: Math.floor(wallNow), code, message, count });
  }

  get recent(): readonly FailureNote[] {
    return [...this.#notes];
  }
}
