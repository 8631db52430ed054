import { errorWithoutStack, type TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import { type NextBatch, PATIENCE_MS, type PlannedBatcher } from "../instance/machine-plan.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { InferenceRequest } from "../request/inference-request.js";
import {
  type ChosenRequests,
  datedOf,
  fairBatch,
  ListView,
  msOf,
  playOut,
  smallest,
  type Window,
  windowFrom,
} from "./batch-windows.js";
import type { FairShares } from "./fair-shares.js";
import type { BatchingRules, BatchPlan, BatchPlanner } from "./form-batch.js";
import { ArrivalsByLimit, type InstanceTimes, LearnedTimes } from "./learned-times.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/** Share of the best rate of in-time answers that a batch must reach while time is scarce. */
const ENOUGH_GOODPUT = 0.97;
/** Share of lost requests from which time counts as scarce, and the further share at which it is as scarce as can be. */
const SCARCE_LOSS = 0.02;
const SCARCE_LOSS_WIDTH = 0.04;
/** The same for the demand, as a share of what the instances can do. */
const SCARCE_DEMAND = 0.9;
const SCARCE_DEMAND_WIDTH = 0.1;
/** Share of the arrivals that have one limit, from which on batches need not leave time for tighter ones. */
const ONE_LIMIT = 0.9;
/** A batch keeps up if it has this many times the rows that arrive meanwhile. */
const KEEPS_UP = 1.1;
/** In-time answers that each arrival during a batch is worth, where all have one limit. */
const LOST_ARRIVALS = 0.5;
/** In-time answers that leaving requests out must gain. */
const LEAST_GAIN = 0.5;
/** Weight that the share of lost requests keeps with each arrival: about the last 200 count. */
const KEPT_LOSS = 0.995;
/** Batches are chosen for this many times the demand. */
const DEMAND_MARGIN = 1.02;
/** Arrivals during a batch are assumed to be this many deviations more than expected. */
const COMING_SAFETY = 2;
/** Points of the queue at which the demand is looked at. */
const DEMAND_POINTS = 16;
/** Share of each batch that requests without a deadline get once they have waited for `PATIENCE_MS`. */
const PATIENT_SHARE = 0.25;
/** Requests of a fair queue that are looked at for a batch, as a multiple of the largest batch. */
const FAIR_REACH = 2;
/** Demand for which fair batches are sized at most, as a share of what the instances can do. */
const FAIR_DEMAND = 0.9;
/** How much longer than alone a caller may wait beside others, where its share allows it. */
const SLOWED_BY = 1.5;
/** Rows of the larger ones among the batches of a caller that is alone, as a multiple of what arrives during one. */
const OWN_ARRIVALS = 1.05;
/** Batches of several callers are chosen for this many times what those of them send that keep within their shares. */
const CONTENDED_MARGIN = 1.15;
/** Steps in which the time of such batches is found. */
const OWN_BATCH_STEPS = 3;
/** What was learnt this long ago is tried again: a request for which it leaves no hope runs, in milliseconds. */
export const STALE_MS = 1000;

/**
 * Batches by deadline (`deadlines`). The batcher asks it three things: may a request come in, which requests are next,
 * and in what batch.
 *
 * ```
 * request --admit--> UrgencyQueue --plan--> formBatch --> payload --> instance
 *              |                    |                                    |
 *           no hope              no hope <------- LearnedTimes, loss ------+
 * ```
 *
 * A batch is as large as its tightest member allows. Where time is scarce, so that some requests are lost anyway, a batch
 * may leave out its tightest members: the first window of the queue is taken that has nearly the best rate of in-time
 * answers. Time is scarce if requests were lost lately, or if the deadlines of the queue demand more than the instances
 * can do.
 */
export class DeadlineBatching implements BatchPlanner, PlannedBatcher {
  /** True if requests wait for a turn in the plan of all models. */
  waits = false;
  readonly #queue: UrgencyQueue;
  readonly #instances: InstanceGroup;
  readonly #maxRows: number;
  readonly #times: LearnedTimes;
  readonly #arrivals = new ArrivalsByLimit();
  /** Share of the requests that were lost lately. */
  #loss = 0;
  #load = 0;
  #loadAt = Number.NaN;

  /**
   * @param form forms a batch at its turn in the plan of all models
   * @param shares the order of the queue, where callers share the model
   */
  constructor(
    queue: UrgencyQueue,
    maxRows: number,
    instances: InstanceGroup,
    readonly form: () => void = () => {},
    private readonly shares?: FairShares,
  ) {
    this.#queue = queue;
    this.#maxRows = maxRows;
    this.#instances = instances;
    this.#times = new LearnedTimes(instances, maxRows);
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#times.started(instance, payload, now);
    const times = this.#times.next;
    if (instance.lease !== undefined && times !== undefined) {
      this.#instances.plan?.expects(instance.lease, times.expectedMs(payload.batchSize));
    }
  }

  ended(instance: ModelInstance, payload: Payload, now: number): void {
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
    this.#arrivals.add(due - now, request.rows, now);
    if (due === Number.POSITIVE_INFINITY) return;
    const times = this.#times.next;
    if (times === undefined || this.#isStale(now)) return;
    const idleInMs = this.#idleInMs(now);
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
    this.#arrivals.windowMs = Math.max(10, 6 * times.expectedMs(times.best));
    if (!this.#isStale(now)) this.#endHopeless(now, times);
    if (queue.size === 0) return undefined;
    const { dated, maxRows } = queue.isFair
      ? this.#chooseFair(now, times, given.maxBatchSize)
      : this.#chooseDated(now, times, given.maxBatchSize);
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

  /** The next batch: when its first request that has hope is due. */
  next(now: number): NextBatch {
    const queue = this.#queue;
    const { head } = queue.patient;
    const times = this.#times.next;
    let due = head === undefined ? Number.POSITIVE_INFINITY : head.queueStart + PATIENCE_MS;
    let rows = head?.rows ?? 1;
    for (let i = 0; i < queue.datedCount; i++) {
      const one = queue.dated(i);
      if (times !== undefined && now + times.expectedMs(one.rows) > one.due) continue;
      if (one.due < due) ({ due, rows } = one);
      break;
    }
    if (due === Number.POSITIVE_INFINITY) due = now + PATIENCE_MS;
    const order = this.shares?.isCommon === true ? this.shares.headOrder() : undefined;
    if (times === undefined) return { due, order, ms: 0, fullMs: 0, yield: 1 };
    const all = Math.min(times.best, queue.rows);
    return {
      due,
      order,
      ms: times.expectedMs(rows),
      fullMs: times.expectedMs(all),
      yield: times.rowsPerMs(all) / times.rowsPerMs(times.best),
    };
  }

  load(now: number): number {
    const times = this.#times.next;
    if (times === undefined) return 0;
    if (this.#loadAt !== now) {
      this.#loadAt = now;
      const demand = this.#queue.isFair ? this.#arrivals.total(now) : this.#demand(now);
      this.#load = demand / times.rowsPerMs(times.best);
    }
    return this.#load;
  }

  workBefore(order: number): number {
    const { shares } = this;
    const times = this.#times.next;
    // The order of a model's own shares says nothing about other models.
    if (times === undefined || shares?.isCommon !== true) return 0;
    return this.#queue.countBefore(order) / times.topRowsPerMs;
  }

  /**
   * Milliseconds that a request waits for others in the order of shares. In the order of deadlines, requests without hope
   * leave those behind them their place, so the queue in front says little.
   */
  #queuedMs({ order }: InferenceRequest, times: InstanceTimes, instances: number): number {
    const queue = this.#queue;
    if (!queue.isFair) return 0;
    const ownMs = queue.countBefore(order) / times.topRowsPerMs;
    let allMs = ownMs;
    for (const other of this.#others()) allMs += other.workBefore(order);
    return Math.max(ownMs / instances, allMs / this.#places);
  }

  /** Milliseconds until each place where a batch may start is free, ascending: an instance, with its resources. */
  #idleInMs(now: number): readonly number[] {
    const idleInMs = this.#times.idleInMs(now);
    const demand = this.#instances.serving[0]?.lease?.demand;
    const freeInMs = demand === undefined ? undefined : this.#instances.plan?.freeInMs(demand, now);
    if (freeInMs === undefined || freeInMs.length === 0) return idleInMs;
    return idleInMs.slice(0, freeInMs.length).map((ms, i) => Math.max(ms, freeInMs[i]!));
  }

  /** Number of batches of all models that run at the same time. */
  get #places(): number {
    const { serving, plan } = this.#instances;
    const demand = serving[0]?.lease?.demand;
    const places = demand === undefined ? undefined : plan?.places(demand);
    return places ?? Math.max(1, serving.length);
  }

  #others(): ReadonlySet<PlannedBatcher> {
    return this.#instances.plan?.others(this) ?? NO_OTHERS;
  }

  /** Load of this model, and of all models, as shares of what runs at the same time. */
  #loads(own: number, now: number): { readonly places: number; readonly total: number } {
    let total = own;
    for (const other of this.#others()) total += other.load(now);
    const places = this.#places;
    return { places: total > 0 ? (places * own) / total : places, total: total / places };
  }

  /** Nothing has run for a while, so what was learnt may be wrong by now. */
  #isStale(now: number): boolean {
    return now - this.#times.lastEnd > STALE_MS && this.#idleInMs(now)[0] === 0;
  }

  #lost(): void {
    this.#loss += 1 - KEPT_LOSS;
  }

  /** Ends the requests that could not be in time even in a batch of their own that starts now. */
  #endHopeless(now: number, times: InstanceTimes): void {
    const queue = this.#queue;
    const hopeless: InferenceRequest[] = [];
    // Behind these, requests of a fair queue expire by themselves.
    const most = queue.isFair
      ? Math.min(queue.datedCount, FAIR_REACH * this.#maxRows)
      : queue.countBefore(now + times.expectedMs(this.#maxRows));
    for (let i = 0; i < most; i++) {
      const request = queue.dated(i);
      if (request.due < now + times.expectedMs(request.rows)) hopeless.push(request);
    }
    for (const request of hopeless) this.#end(request, now, times);
  }

  #end(request: InferenceRequest, now: number, times: InstanceTimes): void {
    if (request.holder !== this.#queue) return;
    if (this.#queue.delays(request)) {
      this.#queue.delay(request);
      return;
    }
    this.#lost();
    request.cancel(hopelessError(request, request.due - now, times.expectedMs(request.rows)));
  }

  /** The requests with deadlines that run next, and the most rows of their batch. */
  #chooseDated(now: number, times: InstanceTimes, limit: number): ChosenRequests {
    const queue = this.#queue;
    const idleInMs = this.#idleInMs(now);
    const load = this.load(now);
    const scarcity = this.#scarcity(this.#loads(load, now).total);
    // Requests that all have one limit gain nothing from small batches: those that wait now are the next ones to be late.
    const hasOneLimit = this.#hasOneLimit(now);
    const most =
      hasOneLimit && this.#others().size === 0
        ? limit
        : Math.min(limit, this.#mostRows(now, times, load * times.rowsPerMs(times.best), idleInMs));
    const count = queue.datedCount;
    if (count === 0) return { dated: [], maxRows: most };
    let chosen = windowFrom(queue, 0, now, times, most);
    if (scarcity > 0) {
      const windows = [chosen];
      let best = chosen.perMs;
      for (let from = 1; from < count && windows[from - 1]!.isTight; from++) {
        const window = windowFrom(queue, from, now, times, most, windows[from - 1]);
        windows.push(window);
        best = Math.max(best, window.perMs);
      }
      chosen = windows.find(({ perMs }) => perMs >= ENOUGH_GOODPUT * scarcity * best)!;
    }
    if (scarcity < 1) chosen = this.#keepingUp(chosen, idleInMs, now, times, most, hasOneLimit);
    const { from, to, maxRows } = chosen;
    const dated = datedOf(queue, from, to);
    this.#endLeftOut(datedOf(queue, 0, from), chosen.rows, now, times);
    // Listeners of requests that were ended may have cancelled others.
    return { dated: dated.filter(({ holder }) => holder === queue), maxRows };
  }

  /** True if nearly all requests have one limit, and the one that is due next is not one of the few that are tighter. */
  #hasOneLimit(now: number): boolean {
    const limitMs = this.#arrivals.mainLimit(ONE_LIMIT, now);
    if (limitMs === undefined || this.#queue.datedCount === 0) return false;
    const { due, queueStart } = this.#queue.dated(0);
    return due - queueStart >= limitMs / 2;
  }

  /**
   * Leaves out the tightest members of a batch if it would not keep up with the arrivals, and more answers are in time
   * without them. Otherwise each batch would be smaller than the one before, because its members have waited longer.
   */
  #keepingUp(
    chosen: Window,
    idleInMs: readonly number[],
    now: number,
    times: InstanceTimes,
    most: number,
    hasOneLimit: boolean,
  ): Window {
    const queue = this.#queue;
    const rate = this.#arrivals.total(now);
    const isSlow = chosen.rows / times.expectedMs(chosen.rows) < (KEEPS_UP * rate) / idleInMs.length;
    if (!chosen.isTight || !isSlow) return chosen;
    // Requests of other limits that wait can use the time that a batch takes.
    const worthOfMs = hasOneLimit ? LOST_ARRIVALS * rate : 0;
    const worthOf = (window: Window): number => {
      const { inTime, busyMs } = playOut(queue, window, now, times, most, idleInMs);
      return inTime - worthOfMs * busyMs;
    };
    let best = chosen;
    let bestValue = worthOf(chosen) + LEAST_GAIN;
    let window = chosen;
    while (
      window.isTight &&
      window.from + 1 < queue.datedCount &&
      window.from - chosen.from < this.#maxRows
    ) {
      window = windowFrom(queue, window.from + 1, now, times, most, window);
      const value = worthOf(window);
      if (value > bestValue) [best, bestValue] = [window, value];
    }
    return best;
  }

  /**
   * The requests that run next in the order of shares. While time is scarce, those that are too tight for a large batch
   * may be left out.
   */
  #chooseFair(now: number, times: InstanceTimes, limit: number): ChosenRequests {
    const queue = this.#queue;
    const idleInMs = this.#idleInMs(now);
    const demand = this.#arrivals.total(now);
    const places = Math.min(idleInMs.length, this.#loads(this.load(now), now).places);
    const top = times.rowsPerMs(times.best) * places;
    // Callers that send more than there is time for do not decide the size of batches.
    const served = Math.min(demand, FAIR_DEMAND * top);
    const share = demand > served ? served / demand : 1;
    let most = Math.min(limit, this.#mostRows(now, times, served, idleInMs, share));
    if (this.shares!.isContended(now)) most = Math.min(most, this.#mostContended(now, times, top));
    const next = datedOf(queue, 0, Math.min(queue.datedCount, FAIR_REACH * this.#maxRows));
    let chosen = fairBatch(next, most, now, times);
    const scarcity = this.#scarcity(demand / top);
    if (scarcity > 0) {
      let best = chosen;
      for (let size = most; size >= 1; size = size >> 1) {
        const roomy = next.filter(({ due }) => now + times.plannedMs(size) <= due);
        const batch = fairBatch(roomy, size, now, times);
        if (batch.perMs > best.perMs) best = batch;
      }
      if (chosen.perMs < ENOUGH_GOODPUT * scarcity * best.perMs) chosen = best;
    }
    const taken = new Set(chosen.requests);
    const last = next.findLastIndex((request) => taken.has(request));
    const leftOut = next.filter((request, i) => i < last && !taken.has(request));
    this.#endLeftOut(leftOut, chosen.rows, now, times);
    const dated = chosen.requests.filter(({ holder }) => holder === queue);
    return { dated, maxRows: Math.max(1, chosen.rows) };
  }

  /**
   * The most rows of a batch while several callers send. A request waits for a batch and runs in another one. Both may
   * take half as long again as the batches of a caller that sends no more than its share would take if it were alone.
   * Batches are at least as large as such callers together need.
   *
   * @param top rows for each millisecond in the best batches
   */
  #mostContended(now: number, times: InstanceTimes, top: number): number {
    const { typical, total } = this.shares!.smallCallers(now, top);
    let aloneMs = times.expectedMs(1);
    for (let i = 0; i < OWN_BATCH_STEPS; i++) aloneMs = msOf(times, 1 + OWN_ARRIVALS * typical * aloneMs);
    const quick = smallest(times.best, (rows) => times.expectedMs(rows + 1) > SLOWED_BY * aloneMs);
    const needed = (CONTENDED_MARGIN * total * times.rowsPerMs(times.best)) / top;
    const enough = smallest(times.best, (rows) => times.rowsPerMs(rows) >= needed);
    return Math.max(quick, enough);
  }

  /**
   * Returns how scarce time is, from 0 to 1.
   *
   * @param demand share of what the instances can do
   */
  #scarcity(demand: number): number {
    const byLoss = (this.#loss - SCARCE_LOSS) / SCARCE_LOSS_WIDTH;
    const byDemand = (demand - SCARCE_DEMAND) / SCARCE_DEMAND_WIDTH;
    return Math.min(1, Math.max(0, byLoss, byDemand));
  }

  /** Ends requests that a batch leaves out, if they have no hope after it. */
  #endLeftOut(requests: readonly InferenceRequest[], rows: number, now: number, times: InstanceTimes): void {
    if (requests.length === 0) return;
    const nextIdleMs = this.#idleInMs(now)[1] ?? Number.POSITIVE_INFINITY;
    const endsAt = now + Math.min(times.expectedMs(rows), nextIdleMs);
    for (const request of requests) {
      if (request.due < endsAt + times.expectedMs(request.rows)) this.#end(request, now, times);
    }
  }

  /**
   * Rows for each millisecond that the deadlines demand: the most, over the next deadlines, of the rows that are due by
   * then, with those that are expected to arrive and to be due by then.
   */
  #demand(now: number): number {
    const queue = this.#queue;
    const count = queue.datedCount;
    const rates = this.#arrivals.rates(now);
    let demand = 0;
    const look = (due: number, waiting: number): void => {
      const horizonMs = due - now;
      if (horizonMs <= 0) return;
      let rows = waiting;
      for (const { limitMs, rowsPerMs } of rates) rows += rowsPerMs * Math.max(0, horizonMs - limitMs);
      demand = Math.max(demand, rows / horizonMs);
    };
    const rowsEach = count === 0 ? 1 : Math.max(1, queue.rows / queue.size);
    const stride = Math.max(1, Math.floor(count / DEMAND_POINTS));
    for (let i = Math.min(count, this.#maxRows) - 1; i >= 0 && i < count; i += stride) {
      look(queue.dated(i).due, (i + 1) * rowsEach);
    }
    for (const { limitMs } of rates) look(now + limitMs, queue.countBefore(now + limitMs) * rowsEach);
    return demand;
  }

  /**
   * The most rows of the next batch: as many as leave requests that arrive meanwhile the time for a batch of their own,
   * and at least so many that batches of this size keep up with the demand.
   *
   * @param share share of the arrivals that are served
   */
  #mostRows(
    now: number,
    times: InstanceTimes,
    demand: number,
    idleInMs: readonly number[],
    share = 1,
  ): number {
    const nextIdleMs = idleInMs[1] ?? Number.POSITIVE_INFINITY;
    const { best } = times;
    const { places } = this.#loads(demand / times.rowsPerMs(best), now);
    const count = Math.min(Math.max(1, idleInMs.length), places);
    const enough = smallest(best, (rows) => count * times.rowsPerMs(rows) >= DEMAND_MARGIN * demand);
    let most = this.#maxRows;
    if (nextIdleMs <= 0) return most;
    for (const { limitMs, rowsPerMs } of this.#arrivals.rates(now)) {
      const blocks = (rows: number): boolean => {
        const busyMs = Math.min(times.plannedMs(rows), nextIdleMs);
        const coming = share * rowsPerMs * busyMs;
        const own = Math.ceil(
          Math.min(this.#maxRows, Math.max(1, coming + COMING_SAFETY * Math.sqrt(coming))),
        );
        return busyMs + times.plannedMs(own) > limitMs;
      };
      most = Math.max(1, smallest(most + 1, blocks) - 1);
    }
    const freeMs = this.#instances.plan === undefined ? Number.POSITIVE_INFINITY : this.#freeMs(now);
    for (const other of this.#others()) {
      if (!other.waits) continue;
      const { due, ms } = other.next(now);
      const blocks = (rows: number) => now + Math.min(times.plannedMs(rows), freeMs) + ms > due;
      if (now + ms <= due) most = Math.max(1, smallest(most + 1, blocks) - 1);
    }
    return Math.max(most, enough);
  }

  /** Milliseconds until resources of the plan are free beside those of the batch that starts now. */
  #freeMs(now: number): number {
    const demand = this.#instances.serving[0]?.lease?.demand;
    return (demand && this.#instances.plan?.freeInMs(demand, now)[1]) ?? Number.POSITIVE_INFINITY;
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

const NO_OTHERS: ReadonlySet<PlannedBatcher> = new Set();

export function hopelessError(request: InferenceRequest, allowedMs: number, expectedMs: number): TritonError {
  const retryAfterMs = Math.max(1, Math.ceil(expectedMs - allowedMs));
  return errorWithoutStack(
    "UNAVAILABLE",
    `${request.logPrefix}Request for model '${request.modelName}' was refused: expected an answer within ` +
      `${Math.max(0, Math.floor(allowedMs))} ms, got an estimate of ${Math.ceil(expectedMs)} ms`,
    { reason: "DEADLINE_TOO_CLOSE", retryAfterMs },
  );
}
