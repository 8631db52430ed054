import { errorWithoutStack } from "@tritonjs/protocol";
import type { Payload } from "../../../batch/payload.js";
import type { InstanceGroup } from "../../../instance/instance-group.js";
import type { ExecutionObserver } from "../../../instance/instance-group-listener.js";
import type { ModelInstance } from "../../../instance/model-instance.js";
import type { PendingRequest } from "../../../request/pending-request.js";
import type { PriorityQueue } from "../../priority-queue.js";
import type { BatchingRules } from "../form-batch.js";
import { ArrivalRate } from "./arrival-rate.js";
import { expectedLatencyMs } from "./expected-latency.js";
import type { AdaptiveRules } from "./largest-batch.js";
import { planBatch } from "./plan-batch.js";
import { afterRefusal, punctualityAfterBatch, UNTRIED } from "./punctuality.js";
import { RunningBatches } from "./running-batches.js";

/**
 * Batches towards a latency (`targetLatencyMs`). It learns about arrivals, running batches and their durations. From
 * these it computes the rules of the dynamic batcher anew each time, and refuses requests that would be answered too
 * late.
 *
 * ```
 * request --admit--> queue --rules--> formBatch --> payload --> instance
 *            ^                 ^                                    |
 *            +-- expected latency, plan <-- durations, lateness ----+
 * ```
 */
export class AdaptiveBatching implements ExecutionObserver {
  readonly #target: AdaptiveRules;
  readonly #arrivals: ArrivalRate;
  readonly #batches: RunningBatches;
  #punctuality = UNTRIED;

  constructor(target: AdaptiveRules, instances: InstanceGroup) {
    this.#target = target;
    this.#arrivals = new ArrivalRate(target.targetLatencyMs / 2);
    this.#batches = new RunningBatches(instances);
    instances.observer = this;
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#batches.start(instance, payload, now);
  }

  ended(_instance: ModelInstance, payload: Payload, now: number): void {
    this.#batches.end(payload, now);
    const { requests } = payload;
    let late = 0;
    for (const request of requests) if (now > this.#latest(request)) late++;
    this.#punctuality = punctualityAfterBatch(this.#punctuality, late, requests.length - late);
  }

  /**
   * Counts a request that arrives, and refuses it if its answer would be late. A request that finds an idle instance
   * and an empty queue is always admitted: a later retry would not help, and expectations have to be tested.
   *
   * @throws TritonError UNAVAILABLE with `retryAfterMs` when the request could not be answered in time.
   */
  admit(request: PendingRequest, queue: PriorityQueue, now: number): void {
    this.#arrivals.add(request.rows, now);
    const outlook = this.#batches.outlook(now);
    if (outlook === undefined || (queue.size === 0 && outlook.idleInMs[0] === 0)) return;
    const allowedMs = this.#latest(request) - now;
    const { rows } = request;
    const { caution } = this.#punctuality;
    const rowsAhead = queue.rowsAhead(request);
    const rowsPerMs = this.#arrivals.rowsPerMs(now);
    const { idleInMs, curve } = outlook;
    const ahead = { rowsAhead, rows, idleInMs, curve, rowsPerMs, caution };
    const expectedMs = expectedLatencyMs(ahead, this.#target);
    if (expectedMs <= allowedMs) return;
    this.#punctuality = afterRefusal(this.#punctuality);
    const retryAfterMs = Math.max(1, Math.ceil(expectedMs - allowedMs));
    throw errorWithoutStack(
      "UNAVAILABLE",
      `${request.logPrefix}Request for model '${request.modelName}' was refused: expected an answer within ` +
        `${Math.floor(allowedMs)} ms, got an estimate of ${Math.ceil(expectedMs)} ms`,
      { reason: "DEADLINE_TOO_CLOSE", retryAfterMs },
    );
  }

  /** The rules for the next batch. While too little is known, they are the given ones. */
  rules(queue: PriorityQueue, given: BatchingRules, now: number): BatchingRules {
    const outlook = this.#batches.outlook(now);
    if (outlook === undefined) return given;
    const { maxBatchSize, targetLatencyMs } = this.#target;
    let rows = 0;
    let oldest = Number.POSITIVE_INFINITY;
    let answerBy = Number.POSITIVE_INFINITY;
    for (let next = queue.head; next !== undefined && rows < maxBatchSize; next = queue.after(next)) {
      rows += next.rows;
      const start = startOf(next);
      oldest = Math.min(oldest, start);
      answerBy = Math.min(answerBy, start + targetLatencyMs, this.#latest(next));
    }
    const { maxRows, waitMs, enoughRows } = planBatch(
      {
        rows,
        waitedMs: now - oldest,
        answerInMs: answerBy - now,
        arrivals: { rowsPerMs: this.#arrivals.rowsPerMs(now), dispersion: this.#arrivals.dispersion },
        nextIdleMs: outlook.idleInMs[1] ?? Number.POSITIVE_INFINITY,
        curve: outlook.curve,
        patience: Math.max(0, this.#punctuality.patience),
      },
      this.#target,
    );
    return {
      ...given,
      maxBatchSize: maxRows,
      preferredBatchSizes: [waitMs > 0 ? enoughRows : maxRows],
      maxQueueDelayMs: waitMs > 0 ? now + waitMs - oldest : 0,
    };
  }

  /** Time from which the answer to a request is late. Its own deadline or timeout counts, if it has one. */
  #latest(request: PendingRequest): number {
    if (request.deadline !== undefined) return request.deadline;
    const { queueTimeoutMicroseconds: own } = request;
    return startOf(request) + (own > 0 ? own / 1000 : this.#target.targetLatencyMs);
  }
}

function startOf(request: PendingRequest): number {
  return request.batcherStart ?? request.queueStart;
}
