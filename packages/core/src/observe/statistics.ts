import type { Duration } from "@tritonjs/protocol";
import { keyList } from "../config/schema/key-list.js";
import { CutLog } from "./cut-log.js";
import { addTo, type ComputeTimes, type ExecutionTimes, zeroDuration } from "./duration.js";
import { ErrorLog } from "./error-log.js";
import { DurationHistogram } from "./latency/duration-histogram.js";
import type { LatencyMetrics } from "./latency/latency-metrics.js";
import type { LatencyWatch } from "./latency/latency-watch.js";
import { ResponseLog } from "./response-statistics.js";

/** Why a request failed: a label of the metrics. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER";

export const FAILURE_REASONS = keyList<Record<FailureReason, unknown>>({
  REJECTED: true,
  CANCELED: true,
  BACKEND: true,
  OTHER: true,
});

/** Durations of the executions of one batch size. */
export interface BatchStatistics {
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
  readonly requestDurations = new DurationHistogram();
  /** From the arrival of each answered request to its execution, or to the look-up in the cache. */
  readonly queueDurations = new DurationHistogram();
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
  recordSuccess(rows: number, queueStart: number, times: ExecutionTimes): void {
    this.inferenceCount += rows;
    addTo(this.success, times.end - queueStart);
    addTo(this.queue, times.start - queueStart);
    addTo(this.computeInput, times.inputEnd - times.start);
    addTo(this.computeInfer, times.inferEnd - times.inputEnd);
    addTo(this.computeOutput, times.end - times.inferEnd);
    this.requestDurations.observe(times.end - queueStart);
    this.queueDurations.observe(times.start - queueStart);
    this.latencies?.success(queueStart, times);
    this.watch?.success(queueStart, times);
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
    const inputEnd = inputMs;
    const inferEnd = inputEnd + inferMs;
    this.recordExecution(rows, { start: 0, inputEnd, inferEnd, end: inferEnd + outputMs }, wallNow);
    this.inferenceCount += rows;
    addTo(this.success, totalMs);
    addTo(this.queue, queueMs);
    addTo(this.computeInput, inputMs);
    addTo(this.computeInfer, inferMs);
    addTo(this.computeOutput, outputMs);
    this.requestDurations.observe(totalMs);
    this.queueDurations.observe(queueMs);
    this.latencies?.ensemble(queueMs, totalMs, { inputMs, inferMs, outputMs });
    this.watch?.add(queueMs, inputMs + inferMs + outputMs, totalMs);
  }

  /** Counts one request that the response cache answered. */
  recordCacheHit(lookupMs: number, totalMs: number, wallNow: number): void {
    this.lastInference = Math.floor(wallNow);
    addTo(this.success, totalMs);
    addTo(this.queue, totalMs - lookupMs);
    addTo(this.cacheHit, lookupMs);
    this.requestDurations.observe(totalMs);
    this.queueDurations.observe(totalMs - lookupMs);
    this.latencies?.cacheHit(lookupMs, totalMs);
    this.watch?.add(totalMs - lookupMs, lookupMs, totalMs);
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
