import {
  type BatchingRules,
  type BatchPlan,
  type BatchPlanner,
  type Clock,
  type InferenceRequest,
  type InstanceGroup,
  type KnownLimits,
  type ModelInstance,
  type Payload,
  startOf,
} from "@tritonjs/core/extension";
import { errorWithoutStack, type TritonError } from "@tritonjs/protocol";
import { BatchChoice, FAIR_REACH } from "./batch-choice.js";
import { ListView, msOf } from "./batch-windows.js";
import type { FairShares } from "./fair-shares.js";
import { LateCauses } from "./late-causes.js";
import { type InstanceTimes, LearnedTimes } from "./learned-times.js";
import { dueOf, urgencyOf } from "./urgency.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/** A request without a deadline counts as due this long after its arrival, in milliseconds. */
export const PATIENCE_MS = 1000;
/** Weight that the share of lost requests keeps with each arrival: about the last 200 count. */
const KEPT_LOSS = 0.995;
/** Share of each batch that requests without a deadline get once they have waited for `PATIENCE_MS`. */
const PATIENT_SHARE = 0.25;
/** Share of lost requests at which a batch towards a target waits no longer than that costs nothing. */
const IMPATIENT_LOSS = 0.002;
/** Such a batch is assumed to last this many usual deviations longer than expected. */
const WAIT_SAFETY = 2.5;
/** Deviation of the requests that may join such a batch, as a multiple of that of independent arrivals. */
const JOINING_SAFETY = 2.8;
/** Least saving of time that makes waiting worthwhile, as a share of the time needed without waiting. */
const WORTH_WAITING = 0.05;
/** Age in milliseconds at which learned times are tried again: a request that they call hopeless then runs. */
export const STALE_MS = 1000;

/** What a {@link DeadlineBatching} works with. */
interface DeadlineBatchingParts {
  readonly queue: UrgencyQueue;
  /** Rows of the largest batch. */
  readonly maxRows: number;
  readonly instances: InstanceGroup;
  readonly clock: Clock;
  readonly limits: Omit<KnownLimits, "lateCause">;
  /** The order of the queue, where callers share the model. */
  readonly shares: FairShares | undefined;
  /** True for a target latency, which all requests have as their limit. Batches wait then only where that saves time. */
  readonly hasTarget: boolean;
}

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
  readonly queue: UrgencyQueue;
  readonly limits: KnownLimits;
  readonly #maxRows: number;
  readonly #times: LearnedTimes;
  readonly #choice: BatchChoice;
  readonly #causes: LateCauses;
  readonly #shares: FairShares | undefined;
  readonly #hasTarget: boolean;
  /** Share of the requests that were lost lately. */
  #loss = 0;
  /** True once a request with a deadline has come. Until then, no request can be late, and no cause is looked for. */
  #hasDeadlines = false;

  constructor({ queue, maxRows, instances, clock, limits, shares, hasTarget }: DeadlineBatchingParts) {
    this.queue = queue;
    this.#hasTarget = hasTarget;
    this.#maxRows = maxRows;
    this.#times = new LearnedTimes(instances, maxRows, hasTarget);
    this.#choice = new BatchChoice(queue, maxRows, this.#times, instances, shares);
    const causes = new LateCauses(this.#times, queue);
    this.#causes = causes;
    this.#shares = shares;
    this.limits = { ...limits, lateCause: (request) => causes.causeOf(request, clock.now()) };
  }

  /** A request without a deadline joins the batch that waits. */
  mayHurry(request: InferenceRequest): boolean {
    return dueOf(request) < Number.POSITIVE_INFINITY;
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    if (this.#hasDeadlines) this.#causes.started(payload, now);
    this.#times.started(instance, payload, now);
  }

  ended(instance: ModelInstance, payload: Payload, now: number): void {
    if (this.#hasDeadlines) this.#causes.ended(payload, now);
    const takenMs = this.#times.ended(instance, payload, now);
    if (takenMs !== undefined) this.#shares?.timed(payload.requests, takenMs);
    for (const request of payload.requests) if (now > dueOf(request)) this.#lost();
  }

  /**
   * Counts a request that arrives, and refuses it if its answer cannot be in time even if everything goes well.
   *
   * @throws TritonError UNAVAILABLE with `retryAfterMs`
   */
  admit(request: InferenceRequest, now: number): void {
    const due = dueOf(request);
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
    // A later retry would not help, and what was learnt has to be tested.
    if (this.#hasTarget && idleInMs[0] === 0 && this.queue.totals.size === 0) return;
    const expectedMs =
      idleInMs[0]! + this.#queuedMs(request, times, idleInMs.length) + times.expectedMs(request.rows);
    if (now + expectedMs <= due) return;
    if (this.queue.delays(request)) {
      urgencyOf(request).due = Number.POSITIVE_INFINITY;
      return;
    }
    this.#lost();
    throw hopelessError(request, due - now, expectedMs);
  }

  /**
   * Plans the next batch of an idle instance. Requests without hope are ended.
   *
   * @returns undefined if no request is left
   */
  plan(given: BatchingRules, now: number): BatchPlan | undefined {
    const queue = this.queue;
    this.#loss += (1 - KEPT_LOSS) * queue.takeExpired();
    const times = this.#times.next;
    if (times === undefined) return { view: queue, rules: given };
    this.#choice.follow(times);
    const isTried = this.#hasTarget && queue.totals.size === 1;
    if (!isTried && !this.#isStale(now)) this.#endHopeless(now, times);
    if (queue.totals.size === 0) return undefined;
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
   * Milliseconds that a request waits for others in the order of shares, or where all have one limit. Otherwise requests
   * without hope leave those behind them their place, so the queue in front says little.
   */
  #queuedMs(request: InferenceRequest, times: InstanceTimes, instances: number): number {
    const queue = this.queue;
    if (!queue.isFair && !this.#hasTarget) return 0;
    return queue.countBefore(urgencyOf(request).order) / times.topRowsPerMs / instances;
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
    const queue = this.queue;
    const hopeless: InferenceRequest[] = [];
    // Behind these, requests of a fair queue expire by themselves.
    const most = queue.isFair
      ? Math.min(queue.datedCount, FAIR_REACH * this.#maxRows)
      : queue.countBefore(now + times.expectedMs(this.#maxRows));
    const isScarce = queue.isFair || this.#choice.isScarce(now, this.#loss);
    for (let i = 0; i < most; i++) {
      const request = queue.dated(i);
      const ms = isScarce ? times.expectedMs(request.rows) : times.leastMs(request.rows);
      if (dueOf(request) < now + ms) hopeless.push(request);
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
      if (dueOf(request) < now + expectedMs) this.#end(request, now, expectedMs);
    }
  }

  #end(request: InferenceRequest, now: number, expectedMs: number): void {
    if (request.holder !== this.queue) return;
    if (this.queue.delays(request)) {
      this.queue.delay(request);
      return;
    }
    this.#lost();
    request.cancel(hopelessError(request, dueOf(request) - now, expectedMs));
  }

  /** Adds requests without deadlines: as many as there is room for, and a share of the batch for those that waited long. */
  #withPatient(
    dated: readonly InferenceRequest[],
    maxRows: number,
    now: number,
  ): readonly InferenceRequest[] {
    const { head } = this.queue.patient;
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
      oldest = Math.min(oldest, startOf(request));
      due = Math.min(due, dueOf(request));
      rows += request.rows;
    }
    if (this.#hasTarget) {
      const waitMs = this.#targetWaitMs(rows, now - oldest, due, now, times);
      return { waitMs: this.#savesTime(rows, waitMs, now, times) ? waitMs : 0, oldest };
    }
    const slackMs = due - now - times.plannedMs(Math.min(this.#maxRows, 2 * rows));
    return { waitMs: Math.min(oldest + maxQueueDelayMs - now, slackMs), oldest };
  }

  /**
   * How long a batch may wait towards a target. A wait as long as the fixed time of a batch costs nothing: a batch of their
   * own would take the requests that join as long. Longer waits end where requests are lost.
   */
  #targetWaitMs(rows: number, waitedMs: number, due: number, now: number, times: InstanceTimes): number {
    const rowsPerMs = this.#choice.rowsPerMs(now, rows);
    const safety = 1 + WAIT_SAFETY * times.spread;
    const perRowMs = (times.expectedMs(this.#maxRows) - times.expectedMs(1)) / Math.max(1, this.#maxRows - 1);
    const joinMs = Math.max(0, due - now - safety * times.expectedMs(rows));
    // Timers are up to a millisecond late.
    const leftMs = due - now - Math.min(1, (waitedMs + due - now) / 20);
    const longestMs = (unforeseen: number): number => {
      const ownMs = safety * msOf(times, Math.min(this.#maxRows, rows + unforeseen));
      return (leftMs - ownMs) / (1 + safety * perRowMs * rowsPerMs);
    };
    const patience = Math.max(0, 1 - this.#loss / IMPATIENT_LOSS);
    const freeMs = Math.min(times.expectedMs(1) - perRowMs - waitedMs, longestMs(0));
    const safeMs = longestMs(JOINING_SAFETY * Math.sqrt(rowsPerMs * joinMs));
    return Math.max(freeMs, patience * (waitedMs + safeMs) - waitedMs);
  }

  /** True if requests are expected to join a batch while it waits, and that spares them much of their own batches. */
  #savesTime(rows: number, waitMs: number, now: number, times: InstanceTimes): boolean {
    const joining = Math.min(this.#choice.rowsPerMs(now, rows) * waitMs, this.#maxRows - rows);
    const apartMs = times.expectedMs(rows) + joining * times.expectedMs(1);
    const togetherMs = msOf(times, rows + joining);
    return apartMs - togetherMs >= WORTH_WAITING * apartMs;
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
