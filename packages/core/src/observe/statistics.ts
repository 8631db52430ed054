import { CutLog } from "./cut-log.js";
import type { LatencyMetrics } from "./latency/latency-metrics.js";

/** A number of events and the nanoseconds they took together. */
export interface Duration {
  count: number;
  ns: number;
}

/** Why a request failed, as the metrics label it. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER";

/** Times of one execution, in milliseconds on the model's clock. */
export interface ExecutionTimes {
  /** The instance took the batch. */
  start: number;
  /** The inputs were ready for the model. */
  inputEnd: number;
  /** The model had its outputs. */
  inferEnd: number;
  /** The outputs were split and checked. */
  end: number;
}

/** How long computing one answer took, in milliseconds: the times of the batch that it was part of. */
export interface ComputeTimes {
  readonly inputMs: number;
  readonly inferMs: number;
  readonly outputMs: number;
}

/** Durations of the executions of one batch size. */
export interface BatchStatistics {
  readonly computeInput: Duration;
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
}

const zero = (): Duration => ({ count: 0, ns: 0 });

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
  readonly success = zero();
  readonly fail = zero();
  readonly queue = zero();
  readonly computeInput = zero();
  readonly computeInfer = zero();
  readonly computeOutput = zero();
  readonly cacheHit = zero();
  readonly cacheMiss = zero();
  /** Lookups and insertions in which the response cache itself failed. */
  cacheFailures = 0;
  readonly failures: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  /** Why batches were cut, where a batcher made them. */
  readonly cuts = new CutLog();
  readonly batches = new Map<number, BatchStatistics>();
  /** Distributions of latencies, on servers that keep them. */
  latencies: LatencyMetrics | undefined;

  /** One execution of a batch of `batchSize` rows. */
  recordExecution(batchSize: number, times: ExecutionTimes, wallNow: number): void {
    this.executionCount++;
    this.lastInference = Math.floor(wallNow);
    let batch = this.batches.get(batchSize);
    if (batch === undefined) {
      batch = { computeInput: zero(), computeInfer: zero(), computeOutput: zero() };
      this.batches.set(batchSize, batch);
    }
    add(batch.computeInput, times.inputEnd - times.start);
    add(batch.computeInfer, times.inferEnd - times.inputEnd);
    add(batch.computeOutput, times.end - times.inferEnd);
  }

  /** One request of a batch that was answered. Its compute times are those of the whole batch. */
  recordSuccess(rows: number, queueStart: number, times: ExecutionTimes): void {
    this.inferenceCount += rows;
    add(this.success, times.end - queueStart);
    add(this.queue, times.start - queueStart);
    add(this.computeInput, times.inputEnd - times.start);
    add(this.computeInfer, times.inferEnd - times.inputEnd);
    add(this.computeOutput, times.end - times.inferEnd);
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
    add(this.success, totalMs);
    add(this.queue, queueMs);
    add(this.computeInput, inputMs);
    add(this.computeInfer, inferMs);
    add(this.computeOutput, outputMs);
    this.latencies?.ensemble(queueMs, totalMs, { inputMs, inferMs, outputMs });
  }

  /** One request that the response cache answered. */
  recordCacheHit(lookupMs: number, totalMs: number, wallNow: number): void {
    this.lastInference = Math.floor(wallNow);
    add(this.success, totalMs);
    add(this.queue, totalMs - lookupMs);
    add(this.cacheHit, lookupMs);
    this.latencies?.cacheHit(lookupMs, totalMs);
  }

  /** One request that was looked for in vain and has been kept since; the time is that of both. */
  recordCacheMiss(milliseconds: number): void {
    add(this.cacheMiss, milliseconds);
    this.latencies?.cacheMiss(milliseconds);
  }

  /** One request that failed after it was accepted. */
  recordFailure(reason: FailureReason, durationMs: number): void {
    this.failures[reason]++;
    add(this.fail, durationMs);
  }
}

function add(duration: Duration, milliseconds: number): void {
  duration.count++;
  duration.ns += Math.max(0, Math.round(milliseconds * 1e6));
}
