import type { InferenceRequest, InstanceGroup } from "@tritonjs/core/extension";
import {
  type BatchSizes,
  fairBatch,
  msOf,
  playOut,
  smallest,
  type Window,
  windowFrom,
} from "./batch-windows.js";
import type { FairShares } from "./fair-shares.js";
import { ArrivalsByLimit, type InstanceTimes, type LearnedTimes } from "./learned-times.js";
import { dueOf, urgencyOf } from "./urgency.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/** Share of the best rate of in-time answers that a batch must reach while time is scarce. */
const ENOUGH_GOODPUT = 0.97;
/** Share of lost requests from which time counts as scarce, and the further share at which it is as scarce as can be. */
const SCARCE_LOSS = 0.02;
const SCARCE_LOSS_WIDTH = 0.04;
/** The same for the demand, as a share of what the instances can do. */
const SCARCE_DEMAND = 1.1;
const SCARCE_DEMAND_WIDTH = 0.1;
/** Share of the arrivals that have one limit, from which on batches need not leave time for tighter ones. */
const ONE_LIMIT = 0.9;
/** A batch keeps up if it has this many times the rows that arrive meanwhile. */
const KEEPS_UP = 1.1;
/** In-time answers that each arrival during a batch is worth, where all have one limit. */
const LOST_ARRIVALS = 0.5;
/** In-time answers that leaving requests out must gain. */
const LEAST_GAIN = 0.5;
/** Batches are chosen for this many times the demand. */
const DEMAND_MARGIN = 1.02;
/** Arrivals during a batch are assumed to be this many deviations more than expected. */
const COMING_SAFETY = 2;
/** Points of the queue at which the demand is looked at. */
const DEMAND_POINTS = 16;
/** Requests of a fair queue that are looked at for a batch, as a multiple of the largest batch. */
export const FAIR_REACH = 2;
/** Demand for which fair batches are sized at most, as a share of what the instances can do. */
const FAIR_DEMAND = 0.9;
/** How much longer than alone the slowest requests of a caller may take beside others, where its share allows it. */
const SLOWED_BY = 1.5;
/** A batch of this many milliseconds delays nobody: the work of the server between two batches takes about as long. */
const SHORT_BATCH_MS = 0.25;
/** Share of the requests of a caller that counts as the slowest. */
const SLOWEST = 0.01;
/** Rows of the larger ones among the batches of a caller that is alone, as a multiple of what arrives during one. */
const OWN_ARRIVALS = 1.05;
/** Batches of several callers are chosen for this many times the rate that callers within their shares need. */
const CONTENDED_MARGIN = 1.15;
/** Share of the best rate that batches of several callers have at least. */
const LEAST_CONTENDED = 0.5;
/** Steps in which the time of such batches is found. */
const OWN_BATCH_STEPS = 3;

/** The requests with deadlines that run next. */
interface ChosenBatch {
  readonly dated: readonly InferenceRequest[];
  /** Most rows of the batch, with requests without deadlines. */
  readonly maxRows: number;
  /** Rows of the chosen requests. */
  readonly rows: number;
  /** Requests that would have run before these. */
  readonly leftOut: readonly InferenceRequest[];
}

/**
 * Chooses which requests with deadlines run next, and in what batch.
 *
 * ```
 * how large?   tightest member, requests that arrive meanwhile | but enough to keep up
 * which ones?  the first of the queue, or without the tightest while time is scarce
 * ```
 *
 * A batch is as large as its tightest member allows. Where time is scarce, so that some requests are lost anyway, a batch
 * may leave out its tightest members: the first window of the queue is taken that has nearly the best rate of in-time
 * answers. Time is scarce if requests were lost lately, or if the deadlines of the queue demand more than the instances
 * can do.
 */
export class BatchChoice {
  readonly #arrivals = new ArrivalsByLimit();
  #load = 0;
  #loadAt = Number.NaN;

  constructor(
    private readonly queue: UrgencyQueue,
    private readonly maxRows: number,
    private readonly times: LearnedTimes,
    private readonly instances: InstanceGroup,
    private readonly shares: FairShares | undefined,
  ) {}

  /** Rows that arrived lately for each millisecond, besides rows that wait. */
  rowsPerMs(now: number, waiting: number): number {
    return Math.max(0, this.#arrivals.total(now) - waiting / this.#arrivals.windowMs);
  }

  arrived(request: InferenceRequest, now: number): void {
    this.#arrivals.add(dueOf(request) - now, request.rows, now);
  }

  /** The requests that run next: in the order of deadlines, or in that of shares. @param loss share lost lately */
  next(now: number, times: InstanceTimes, limit: number, loss: number): ChosenBatch {
    return this.queue.isFair ? this.#fair(now, times, limit, loss) : this.#dated(now, times, limit, loss);
  }

  /** True if some requests are lost anyway, so that those without much hope must not cost time. */
  isScarce(now: number, loss: number): boolean {
    return scarcityOf(this.load(now) / this.#places, loss) > 0;
  }

  /** Sets the time over which arrivals are looked at, by how long batches take now. */
  follow(times: InstanceTimes): void {
    this.#arrivals.windowMs = Math.max(10, 6 * times.expectedMs(times.best));
  }

  /** Milliseconds of an instance for each millisecond, which the deadlines of the requests demand. */
  load(now: number): number {
    const times = this.times.next;
    if (times === undefined) return 0;
    if (this.#loadAt !== now) {
      this.#loadAt = now;
      const demand = this.queue.isFair ? this.#arrivals.total(now) : this.#demand(now);
      this.#load = demand / times.rowsPerMs(times.best);
    }
    return this.#load;
  }

  /** Number of batches that run at the same time. */
  get #places(): number {
    return Math.max(1, this.instances.serving.length);
  }

  /** The requests with deadlines that run next, and the most rows of their batch. */
  #dated(now: number, times: InstanceTimes, limit: number, loss: number): ChosenBatch {
    const queue = this.queue;
    const idleInMs = this.times.idleInMs(now);
    const load = this.load(now);
    const scarcity = scarcityOf(load / this.#places, loss);
    // Requests that all have one limit gain nothing from small batches: those that wait now are the next ones to be late.
    const hasOneLimit = this.#hasOneLimit(now);
    const demand = load * times.rowsPerMs(times.best);
    const enough = this.#enoughRows(times, demand, idleInMs);
    const most = hasOneLimit ? limit : Math.min(limit, this.#mostRows(now, times, enough, idleInMs));
    const sizes = { enough: hasOneLimit ? this.maxRows : enough, most };
    const count = queue.datedCount;
    if (count === 0) return { dated: [], maxRows: most, rows: 0, leftOut: [] };
    if (scarcity === 0) {
      const all = this.#withDoubtful(idleInMs, now, times, sizes, hasOneLimit);
      if (all !== undefined) return all;
    }
    let chosen = windowFrom(queue, 0, now, times, sizes);
    if (scarcity > 0) {
      const windows = [chosen];
      let best = chosen.perMs;
      for (let from = 1; from < count && windows[from - 1]!.isTight; from++) {
        const window = windowFrom(queue, from, now, times, sizes, windows[from - 1]);
        windows.push(window);
        best = Math.max(best, window.perMs);
      }
      chosen = windows.find(({ perMs }) => perMs >= ENOUGH_GOODPUT * scarcity * best)!;
    }
    if (scarcity < 1) chosen = this.#keepingUp(chosen, idleInMs, now, times, sizes, hasOneLimit);
    const { from, to, maxRows } = chosen;
    const dated = queue.datedFrom(from, to);
    return { dated, maxRows, rows: chosen.rows, leftOut: queue.datedFrom(0, from) };
  }

  /**
   * A batch with the requests that may be in time if it takes less than usual. They do not decide how large it is.
   *
   * @returns undefined if there are none, or the others have no time for them
   */
  #withDoubtful(
    idleInMs: readonly number[],
    now: number,
    times: InstanceTimes,
    sizes: BatchSizes,
    hasOneLimit: boolean,
  ): ChosenBatch | undefined {
    const queue = this.queue;
    const count = queue.datedCount;
    let [doubtful, rows] = [0, 0];
    for (; doubtful < count && dueOf(queue.dated(doubtful)) < now + times.plannedMs(1); doubtful++)
      rows += queue.dated(doubtful).rows;
    if (doubtful === 0) return undefined;
    if (doubtful === count)
      return { dated: queue.datedFrom(0, count), maxRows: sizes.most, rows, leftOut: [] };
    const window = windowFrom(queue, doubtful, now, times, sizes);
    const { from, to, ...rest } = this.#keepingUp(window, idleInMs, now, times, sizes, hasOneLimit);
    rows += rest.rows;
    const hasTime = rows <= this.maxRows && now + times.plannedMs(rows) <= dueOf(queue.dated(doubtful));
    if (from !== doubtful || !hasTime) return undefined;
    return { dated: queue.datedFrom(0, to), maxRows: Math.max(rows, rest.maxRows), rows, leftOut: [] };
  }

  /** True if nearly all requests have one limit, and the one that is due next is not one of the few that are tighter. */
  #hasOneLimit(now: number): boolean {
    const limitMs = this.#arrivals.mainLimit(ONE_LIMIT, now);
    if (limitMs === undefined || this.queue.datedCount === 0) return false;
    const first = this.queue.dated(0);
    return dueOf(first) - first.queueStart >= limitMs / 2;
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
    sizes: BatchSizes,
    hasOneLimit: boolean,
  ): Window {
    const queue = this.queue;
    const rate = this.#arrivals.total(now);
    const isSlow = chosen.rows / times.expectedMs(chosen.rows) < (KEEPS_UP * rate) / idleInMs.length;
    if (!chosen.isTight || !isSlow) return chosen;
    // Requests of other limits that wait can use the time that a batch takes.
    const worthOfMs = hasOneLimit ? LOST_ARRIVALS * rate : 0;
    const worthOf = (window: Window): number => {
      const { inTime, busyMs } = playOut(queue, window, now, times, sizes, idleInMs);
      return inTime - worthOfMs * busyMs;
    };
    let best = chosen;
    let bestValue = worthOf(chosen) + LEAST_GAIN;
    let window = chosen;
    while (window.isTight && window.from + 1 < queue.datedCount && window.from - chosen.from < this.maxRows) {
      window = windowFrom(queue, window.from + 1, now, times, sizes, window);
      const value = worthOf(window);
      if (value > bestValue) [best, bestValue] = [window, value];
    }
    return best;
  }

  /**
   * The requests that run next in the order of shares. While time is scarce, those that are too tight for a large batch
   * may be left out.
   */
  #fair(now: number, times: InstanceTimes, limit: number, loss: number): ChosenBatch {
    const queue = this.queue;
    const idleInMs = this.times.idleInMs(now);
    const demand = this.#arrivals.total(now);
    const places = Math.min(idleInMs.length, this.#places);
    const top = times.rowsPerMs(times.best) * places;
    // Callers that send more than there is time for do not decide the size of batches.
    const served = Math.min(demand, FAIR_DEMAND * top);
    const share = demand > served ? served / demand : 1;
    const enough = this.#enoughRows(times, served, idleInMs);
    let most = Math.min(limit, this.#mostRows(now, times, enough, idleInMs, share));
    const next = queue.datedFrom(0, Math.min(queue.datedCount, FAIR_REACH * this.maxRows));
    if (this.shares!.isContended(now)) most = Math.min(most, this.#mostContended(now, times, top, next));
    const first = fairBatch(next, most, now, times);
    let chosen = first;
    const scarcity = scarcityOf(demand / top, loss);
    if (scarcity > 0) {
      let best = chosen;
      for (let size = most; size >= 1; size = size >> 1) {
        const roomy = next.filter((request) => now + times.plannedMs(size) <= dueOf(request));
        const batch = fairBatch(roomy, size, now, times);
        if (batch.perMs > best.perMs) best = batch;
      }
      if (chosen.perMs < ENOUGH_GOODPUT * scarcity * best.perMs) chosen = best;
    }
    const { requests, rows } = chosen;
    let leftOut: readonly InferenceRequest[] = [];
    if (chosen !== first) {
      const taken = new Set(requests);
      const last = next.findLastIndex((request) => taken.has(request));
      leftOut = next.filter((request, i) => i < last && !taken.has(request));
    }
    return { dated: requests, maxRows: Math.max(1, rows), rows, leftOut };
  }

  /**
   * The most rows of a batch while several callers send. A request waits for a batch and runs in another one. Both
   * together may take half as long again as the slowest requests of a caller that sends no more than its share would take
   * if it were alone. Such a caller rarely waits for itself if it sends little. Batches are at least so large that such
   * callers get what they send while all others take their shares too. If every caller sends more than its share, none
   * of them gains from small batches. Requests of small callers that wait together run together.
   *
   * @param top rows for each millisecond in the best batches
   * @param next the first requests of the queue
   */
  #mostContended(now: number, times: InstanceTimes, top: number, next: readonly InferenceRequest[]): number {
    const { typical, need } = this.shares!.smallCallers(now, top);
    if (typical === 0) return this.maxRows;
    let aloneMs = times.expectedMs(1);
    for (let i = 0; i < OWN_BATCH_STEPS; i++) aloneMs = msOf(times, 1 + OWN_ARRIVALS * typical * aloneMs);
    const busy = (typical * aloneMs) / (1 + typical * aloneMs);
    const waitMs = aloneMs * Math.max(0, 1 - SLOWEST / busy);
    const mostMs = Math.max(SHORT_BATCH_MS, (SLOWED_BY * (waitMs + aloneMs)) / 2);
    const quick = smallest(this.maxRows, (rows) => times.expectedMs(rows + 1) > mostMs);
    const needed = times.rowsPerMs(times.best) * Math.max(LEAST_CONTENDED, (CONTENDED_MARGIN * need) / top);
    const enough = smallest(times.best, (rows) => times.rowsPerMs(rows) >= needed);
    return Math.max(quick, enough, this.#rowsOfSmall(next));
  }

  /** Rows of small callers before the first request of another caller. */
  #rowsOfSmall(next: readonly InferenceRequest[]): number {
    // Other requests of such callers may wait for other models, which this batch would delay.
    if (this.shares!.isCommon) return 0;
    let sum = 0;
    for (const request of next) {
      if (!urgencyOf(request).share!.isSmall) break;
      sum += request.rows;
    }
    return sum;
  }

  /**
   * Rows for each millisecond that the deadlines demand: the most, over the next deadlines, of the rows that are due by
   * then, with those that are expected to arrive and to be due by then.
   */
  #demand(now: number): number {
    const queue = this.queue;
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
    const rowsEach = count === 0 ? 1 : Math.max(1, queue.totals.rows / queue.totals.size);
    const stride = Math.max(1, Math.floor(count / DEMAND_POINTS));
    for (let i = Math.min(count, this.maxRows) - 1; i >= 0 && i < count; i += stride) {
      look(dueOf(queue.dated(i)), (i + 1) * rowsEach);
    }
    for (const { limitMs } of rates) look(now + limitMs, queue.countBefore(now + limitMs) * rowsEach);
    return demand;
  }

  /** Rows of batches that keep up with the demand, where they have to. */
  #enoughRows(times: InstanceTimes, demand: number, idleInMs: readonly number[]): number {
    const { best } = times;
    const count = Math.min(Math.max(1, idleInMs.length), this.#places);
    return smallest(best, (rows) => count * times.rowsPerMs(rows) >= DEMAND_MARGIN * demand);
  }

  /**
   * The most rows of the next batch. Requests that arrive meanwhile must have time left for a batch of their own, and
   * batches of this size must keep up with the demand. A request for which even one row leaves no time does not lower the
   * limit. If a request would be left behind without time for the batch after, all may run.
   *
   * @param share share of the arrivals that are served
   */
  #mostRows(
    now: number,
    times: InstanceTimes,
    enough: number,
    idleInMs: readonly number[],
    share = 1,
  ): number {
    const nextIdleMs = idleInMs[1] ?? Number.POSITIVE_INFINITY;
    let most = this.maxRows;
    if (nextIdleMs <= 0) return most;
    for (const { limitMs, rowsPerMs } of this.#arrivals.rates(now)) {
      const blocks = (rows: number): boolean => {
        const busyMs = Math.min(times.plannedMs(rows), nextIdleMs);
        const coming = share * rowsPerMs * busyMs;
        const own = Math.ceil(
          Math.min(this.maxRows, Math.max(1, coming + COMING_SAFETY * Math.sqrt(coming))),
        );
        return busyMs + times.plannedMs(own) > limitMs;
      };
      if (!blocks(1)) most = Math.max(1, smallest(most + 1, blocks) - 1);
    }
    most = Math.max(most, enough);
    return this.#leavesHope(most, now, times) ? most : this.maxRows;
  }

  /** True if the first request that a batch of this size leaves behind has time for the batch after it. */
  #leavesHope(most: number, now: number, times: InstanceTimes): boolean {
    const queue = this.queue;
    let rows = 0;
    for (let i = 0; i < queue.datedCount; i++) {
      const request = queue.dated(i);
      if (rows + request.rows > most) {
        const left = Math.min(this.maxRows, queue.totals.rows - rows);
        return now + times.plannedMs(rows) + times.plannedMs(left) <= dueOf(request);
      }
      rows += request.rows;
    }
    return true;
  }
}

/**
 * Returns how scarce time is, from 0 to 1.
 *
 * @param demand share of what the instances can do
 * @param loss share of the requests that were lost lately
 */
function scarcityOf(demand: number, loss: number): number {
  const byLoss = (loss - SCARCE_LOSS) / SCARCE_LOSS_WIDTH;
  const byDemand = (demand - SCARCE_DEMAND) / SCARCE_DEMAND_WIDTH;
  return Math.min(1, Math.max(0, byLoss, byDemand));
}
