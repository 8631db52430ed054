import { errorWithoutStack, type TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { LateCause } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { BatchChoice, FAIR_REACH } from "./batch-choice.js";
import { ListView } from "./batch-windows.js";
import type { FairShares } from "./fair-shares.js";
import type { BatchingRules, BatchPlan, BatchPlanner } from "./form-batch.js";
import { LateCauses } from "./late-causes.js";
import { type InstanceTimes, LearnedTimes } from "./learned-times.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/** A request without a deadline counts as due this long after its arrival, in milliseconds. */
export const PATIENCE_MS = 1000;
/** Weight that the share of lost requests keeps with each arrival: about the last 200 count. */
const KEPT_LOSS = 0.995;
/** Share of each batch that requests without a deadline get once they have waited for `PATIENCE_MS`. */
const PATIENT_SHARE = 0.25;
/** Age in milliseconds at which learned times are tried again: a request that they call hopeless then runs. */
export const STALE_MS = 1000;

/**
 * Batches by deadline (`deadlines`). The batcher asks it three things: may a request come in, which requests are next,
 * and in what batch.
 *
 * ```
 * request --admit--> UrgencyQueue --plan, BatchChoice--> formBatch --> payload --> instance
 *              |                    |                                                 |
 *           no hope              no hope <------------ LearnedTimes, loss --------------+
 * ```
 */
export class DeadlineBatching implements BatchPlanner {
  readonly #queue: UrgencyQueue;
  readonly #maxRows: number;
  readonly #times: LearnedTimes;
  readonly #choice: BatchChoice;
  readonly #causes: LateCauses;
  /** Share of the requests that were lost lately. */
  #loss = 0;
  /** True once a request with a deadline has come. Until then, no request can be late, and no cause is looked for. */
  #hasDeadlines = false;

  /** @param shares the order of the queue, where callers share the model */
  constructor(
    queue: UrgencyQueue,
    maxRows: number,
    instances: InstanceGroup,
    private readonly shares?: FairShares,
  ) {
    this.#queue = queue;
    this.#maxRows = maxRows;
    this.#times = new LearnedTimes(instances, maxRows);
    this.#choice = new BatchChoice(queue, maxRows, this.#times, instances, shares);
    this.#causes = new LateCauses(this.#times, queue);
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    if (this.#hasDeadlines) this.#causes.started(payload, now);
    this.#times.started(instance, payload, now);
  }

  ended(instance: ModelInstance, payload: Payload, now: number): void {
    if (this.#hasDeadlines) this.#causes.ended(payload, now);
    const takenMs = this.#times.ended(instance, payload, now);
    if (takenMs !== undefined) this.shares?.timed(payload.requests, takenMs);
    for (const { due } of payload.requests) if (now > due) this.#lost();
  }

  /**
   * Counts a request that arrives, and refuses it if its answer cannot be in time even if everything goes well.
   *
   * @throws TritonError UNAVAILABLE with `retryAfterMs`
   */
  admit(request: InferenceRequest, now: number): void {
    const { due } = request;
    this.#loss *= KEPT_LOSS;
    if (due < Number.POSITIVE_INFINITY) this.#hasDeadlines = true;
    if (!this.#hasDeadlines) return;
    this.#causes.arrived(request, now);
    this.#choice.arrived(request, now);
    if (due === Number.POSITIVE_INFINITY) return;
    const times = this.#times.next;
    if (times === undefined || this.#isStale(now)) return;
    const idleInMs = this.#times.idleInMs(now);
    if (idleInMs.length === 0) return;
    const expectedMs =
      idleInMs[0]! + this.#queuedMs(request, times, idleInMs.length) + times.expectedMs(request.rows);
    if (now + expectedMs <= due) return;
    if (this.#queue.delays(request)) {
      request.due = Number.POSITIVE_INFINITY;
      return;
    }
    this.#lost();
    throw hopelessError(request, due - now, expectedMs);
  }

  lateCause(request: InferenceRequest, now: number): LateCause {
    return this.#causes.causeOf(request, now);
  }

  /**
   * Plans the next batch of an idle instance. Requests without hope are ended.
   *
   * @returns undefined if no request is left
   */
  plan(given: BatchingRules, now: number): BatchPlan | undefined {
    const queue = this.#queue;
    this.#loss += (1 - KEPT_LOSS) * queue.takeExpired();
    const times = this.#times.next;
    if (times === undefined) return { view: queue, rules: given };
    this.#choice.follow(times);
    if (!this.#isStale(now)) this.#endHopeless(now, times);
    if (queue.size === 0) return undefined;
    const chosen = this.#choice.next(now, times, given.maxBatchSize, this.#loss);
    this.#endLeftOut(chosen.leftOut, chosen.rows, now, times);
    // Listeners of requests that were ended may have cancelled others.
    const dated = chosen.dated.filter(({ holder }) => holder === queue);
    const { maxRows } = chosen;
    const batch = this.#withPatient(dated, maxRows, now);
    if (batch.length === 0) return undefined;
    const { waitMs, oldest } = this.#wait(batch, given, now, times);
    const rules: BatchingRules = {
      ...given,
      maxBatchSize: maxRows,
      preferredBatchSizes: [...given.preferredBatchSizes.filter((size) => size < maxRows), maxRows],
      maxQueueDelayMs: waitMs > 0 ? now + waitMs - oldest : 0,
    };
    return { view: new ListView(batch), rules };
  }

  /**
   * Milliseconds that a request waits for others in the order of shares. In the order of deadlines, requests without hope
   * leave those behind them their place, so the queue in front says little.
   */
  #queuedMs({ order }: InferenceRequest, times: InstanceTimes, instances: number): number {
    const queue = this.#queue;
    if (!queue.isFair) return 0;
    return queue.countBefore(order) / times.topRowsPerMs / instances;
  }

  /** Nothing has run for a while, so what was learnt may be wrong by now. */
  #isStale(now: number): boolean {
    return now - this.#times.lastEnd > STALE_MS && this.#times.idleInMs(now)[0] === 0;
  }

  #lost(): void {
    this.#loss += 1 - KEPT_LOSS;
  }

  /**
   * Ends the requests that could not be in time even in a batch of their own that starts now: one that is quick, while there
   * is time for all.
   */
  #endHopeless(now: number, times: InstanceTimes): void {
    const queue = this.#queue;
    const hopeless: InferenceRequest[] = [];
    // Behind these, requests of a fair queue expire by themselves.
    const most = queue.isFair
      ? Math.min(queue.datedCount, FAIR_REACH * this.#maxRows)
      : queue.countBefore(now + times.expectedMs(this.#maxRows));
    const isScarce = queue.isFair || this.#choice.isScarce(now, this.#loss);
    for (let i = 0; i < most; i++) {
      const request = queue.dated(i);
      const ms = isScarce ? times.expectedMs(request.rows) : times.leastMs(request.rows);
      if (request.due < now + ms) hopeless.push(request);
    }
    for (const request of hopeless) this.#end(request, now, times.expectedMs(request.rows));
  }

  /** Ends requests that a batch leaves out, if they have no hope after it. */
  #endLeftOut(requests: readonly InferenceRequest[], rows: number, now: number, times: InstanceTimes): void {
    if (requests.length === 0) return;
    const nextIdleMs = this.#times.idleInMs(now)[1] ?? Number.POSITIVE_INFINITY;
    const endsAt = now + Math.min(times.expectedMs(rows), nextIdleMs);
    for (const request of requests) {
      const expectedMs = endsAt - now + times.expectedMs(request.rows);
      if (request.due < now + expectedMs) this.#end(request, now, expectedMs);
    }
  }

  #end(request: InferenceRequest, now: number, expectedMs: number): void {
    if (request.holder !== this.#queue) return;
    if (this.#queue.delays(request)) {
      this.#queue.delay(request);
      return;
    }
    this.#lost();
    request.cancel(hopelessError(request, request.due - now, expectedMs));
  }

  /** Adds requests without deadlines: as many as there is room for, and a share of the batch for those that waited long. */
  #withPatient(
    dated: readonly InferenceRequest[],
    maxRows: number,
    now: number,
  ): readonly InferenceRequest[] {
    const { head } = this.#queue.patient;
    if (head === undefined) return dated;
    const batch: InferenceRequest[] = [];
    const late: InferenceRequest[] = [];
    let rows = 0;
    let next: InferenceRequest | undefined = head;
    const share = Math.max(1, Math.floor(PATIENT_SHARE * maxRows));
    for (; next !== undefined && now - next.queueStart > PATIENCE_MS && rows < share; next = next.next) {
      late.push(next);
      rows += next.rows;
    }
    // The batch is as large as planned for its deadlines, so the late ones take the places of the last.
    for (const request of dated) {
      if (batch.length > 0 && rows + request.rows > maxRows) break;
      batch.push(request);
      rows += request.rows;
    }
    batch.push(...late);
    for (; next !== undefined && (batch.length === 0 || rows + next.rows <= maxRows); next = next.next) {
      batch.push(next);
      rows += next.rows;
    }
    return batch;
  }

  /** How long a batch may wait for further requests, if the model has a delay: no longer than its deadlines allow. */
  #wait(
    batch: readonly InferenceRequest[],
    { maxQueueDelayMs }: BatchingRules,
    now: number,
    times: InstanceTimes,
  ): { readonly waitMs: number; readonly oldest: number } {
    let oldest = now;
    if (maxQueueDelayMs <= 0) return { waitMs: 0, oldest };
    let rows = 0;
    let due = Number.POSITIVE_INFINITY;
    for (const request of batch) {
      oldest = Math.min(oldest, request.batcherStart ?? request.queueStart);
      due = Math.min(due, request.due);
      rows += request.rows;
    }
    const slackMs = due - now - times.plannedMs(Math.min(this.#maxRows, 2 * rows));
    return { waitMs: Math.min(oldest + maxQueueDelayMs - now, slackMs), oldest };
  }
}

export function hopelessError(request: InferenceRequest, allowedMs: number, expectedMs: number): TritonError {
  const retryAfterMs = Math.max(1, Math.ceil(expectedMs - allowedMs));
  return errorWithoutStack(
    "UNAVAILABLE",
    `${request.logPrefix}Request for model '${request.modelName}' was refused: expected an answer within ` +
      `${Math.max(0, Math.floor(allowedMs))} ms, got an estimate of ${Math.ceil(expectedMs)} ms`,
    { reason: "DEADLINE_TOO_CLOSE", retryAfterMs },
  );
}
