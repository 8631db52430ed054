import type { Duration } from "@tritonjs/protocol";
import { keyList } from "../config/schema/key-list.js";
import { CutLog } from "./cut-log.js";
import { addTo, type ComputeTimes, type ExecutionTimes, zeroDuration } from "./duration.js";
import type { LatencyMetrics } from "./latency/latency-metrics.js";
import { ResponseLog } from "./response-statistics.js";

/** Why a request failed, as the metrics label it. */
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
 * Counters of one served model version, by Triton's counting rules: plain numbers on the hot path, turned into
 * protocol messages and metrics when somebody asks.
 */
export class ModelStatistics {
  /** Wall time of the last inference, in milliseconds since 1970; 0 for none. */
  lastInference = 0;
  /** Rows of successful requests; a request without a batch axis counts as one. */
  inferenceCount = 0;
  /** Executions of the model, failed ones included. */
  executionCount = 0;
  /** How long loading took, in milliseconds. */
  loadDurationMs = 0;
  /** Requests accepted and not yet taken by an instance. */
  pendingCount = 0;
  readonly success = zeroDuration();
  readonly fail = zeroDuration();
  readonly queue = zeroDuration();
  readonly computeInput = zeroDuration();
  readonly computeInfer = zeroDuration();
  readonly computeOutput = zeroDuration();
  readonly cacheHit = zeroDuration();
  readonly cacheMiss = zeroDuration();
  /** Lookups and insertions in which the response cache itself failed. */
  cacheFailures = 0;
  readonly failures: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  /** Requests refused at the door with UNAVAILABLE, for want of room or of time: Triton counts none of them. */
  refusedCount = 0;
  /** Why batches were cut, where a batcher made them. */
  readonly cuts = new CutLog();
  readonly batches = new Map<number, BatchStatistics>();
  /** Single responses, of decoupled models. */
  readonly responses = new ResponseLog();
  /** Distributions of latencies, on servers that keep them. */
  latencies: LatencyMetrics | undefined;

  /** One execution of a batch of `batchSize` rows. */
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

  /** One request of a batch that was answered. Its compute times are those of the whole batch. */
  recordSuccess(rows: number, queueStart: number, times: ExecutionTimes): void {
    this.inferenceCount += rows;
    addTo(this.success, times.end - queueStart);
    addTo(this.queue, times.start - queueStart);
    addTo(this.computeInput, times.inputEnd - times.start);
    addTo(this.computeInfer, times.inferEnd - times.inputEnd);
    addTo(this.computeOutput, times.end - times.inferEnd);
    this.latencies?.success(queueStart, times);
  }

  /**
   * One request of an ensemble that was answered, which counts as an execution of its own. Its compute times are
   * the sums over its steps.
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
    this.latencies?.ensemble(queueMs, totalMs, { inputMs, inferMs, outputMs });
  }

  /** One request that the response cache answered. */
  recordCacheHit(lookupMs: number, totalMs: number, wallNow: number): void {
    this.lastInference = Math.floor(wallNow);
    addTo(this.success, totalMs);
    addTo(this.queue, totalMs - lookupMs);
    addTo(this.cacheHit, lookupMs);
    this.latencies?.cacheHit(lookupMs, totalMs);
  }

  /** One request that was looked for in vain and has been kept since; the time is that of both. */
  recordCacheMiss(milliseconds: number): void {
    addTo(this.cacheMiss, milliseconds);
    this.latencies?.cacheMiss(milliseconds);
  }

  /** One request that failed after it was accepted. */
  recordFailure(reason: FailureReason, durationMs: number): void {
    this.failures[reason]++;
    addTo(this.fail, durationMs);
  }
}
