import type { Duration, ErrorCode, ResponseStatistics, TritonError } from "@tritonjs/protocol";
import { keyList } from "../config/option-names.js";
import {
  addTo,
  type ComputeTimes,
  DURATION_BOUNDS_MS,
  type ExecutionTimes,
  LatencyHistogram,
  zeroDuration,
} from "./durations.js";
import type { LatencyMetrics, LatencyWatch } from "./latency-metrics.js";

/** Why a request failed: a label of the metrics. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER";

export const FAILURE_REASONS = keyList<Record<FailureReason, unknown>>({
  REJECTED: true,
  CANCELED: true,
  BACKEND: true,
  OTHER: true,
});

/** Durations of the executions of one batch size. */
interface BatchStatistics {
  readonly computeInput: Duration;
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
}

/**
 * Counters of one served model version, by Triton's counting rules. They are plain numbers on the hot path, and become
 * protocol messages and metrics on demand.
 */
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
  readonly failures: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  /** Number of requests refused on arrival with UNAVAILABLE, for lack of room or time. Triton does not count them. */
  refusedCount = 0;
  /** Why the batches of a batcher were cut. */
  readonly cuts = new CutLog();
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

  /**
   * Counts one answered request of an ensemble, and an execution of the ensemble. The compute times are the sums over
   * the steps.
   */
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

export const CUT_REASONS = keyList<Record<CutReason, unknown>>({
  SIZE: true,
  PREFERRED: true,
  DELAY: true,
  SHAPE: true,
  COST: true,
  POLICY: true,
  INSTANCE: true,
  FLUSH: true,
});

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
  readonly counts: Record<CutReason, number> = {
    SIZE: 0,
    PREFERRED: 0,
    DELAY: 0,
    SHAPE: 0,
    COST: 0,
    POLICY: 0,
    INSTANCE: 0,
    FLUSH: 0,
  };
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

  /** The last failures, latest first; at most 16. */
  get recent(): readonly FailureNote[] {
    return [...this.#notes];
  }
}
