import type { InferenceRequest, QueuedRequestView } from "@tritonjs/core/extension";
import type { InstanceTimes } from "./learned-times.js";
import { dueOf } from "./urgency.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/*
 * Batches that could be made of the requests of an urgency queue: in the order of deadlines as a window of the queue, in
 * the order of shares as a list.
 */

export interface Window {
  readonly from: number;
  readonly to: number;
  readonly rows: number;
  readonly maxRows: number;
  /** In-time answers for each millisecond. */
  readonly perMs: number;
  /** True if the deadline of the first request keeps the batch smaller than it could be. */
  readonly isTight: boolean;
}

/** Sizes between which a batch is chosen. */
export interface BatchSizes {
  /** Rows of batches that keep up with the demand. */
  readonly enough: number;
  readonly most: number;
}

/**
 * The largest batch that begins with a request and answers it in time.
 *
 * @param before window that begins one request earlier, and so ends no later
 */
export function windowFrom(
  queue: UrgencyQueue,
  from: number,
  now: number,
  times: InstanceTimes,
  { enough, most }: BatchSizes,
  before?: Window,
): Window {
  const first = queue.dated(from);
  const inTime = times.largestWithin(dueOf(first) - now, enough);
  const maxRows = Math.max(first.rows, Math.min(most, inTime));
  const reached = before !== undefined && before.to > from;
  let rows = reached ? before.rows - queue.dated(from - 1).rows : first.rows;
  let to = reached ? before.to : from + 1;
  for (; to < queue.datedCount; to++) {
    const next = queue.dated(to).rows;
    if (rows + next > maxRows) break;
    rows += next;
  }
  const isTight = to < queue.datedCount && inTime < most;
  return { from, to, rows, maxRows, perMs: (to - from) / times.expectedMs(rows), isTight };
}

/**
 * Plays the queue out without further requests: a first batch, then at each idle instance the largest batch that its
 * earliest deadline allows.
 *
 * @param idleInMs milliseconds until each instance is idle
 * @returns the number of answers in time, and the milliseconds that they take of all instances
 */
export function playOut(
  queue: UrgencyQueue,
  first: Window,
  now: number,
  times: InstanceTimes,
  sizes: BatchSizes,
  idleInMs: readonly number[],
): { readonly inTime: number; readonly busyMs: number } {
  const freeAt = idleInMs.map((ms) => now + ms);
  let [inTime, busyMs] = [0, 0];
  let next: Window | undefined = first;
  let from = first.from;
  while (from < queue.datedCount) {
    let soonest = 0;
    for (let i = 1; i < freeAt.length; i++) if (freeAt[i]! < freeAt[soonest]!) soonest = i;
    const at = freeAt[soonest]!;
    const hasHope = (request: InferenceRequest) => at + times.expectedMs(request.rows) <= dueOf(request);
    if (next === undefined) {
      while (from < queue.datedCount && !hasHope(queue.dated(from))) from++;
      if (from === queue.datedCount) break;
      next = windowFrom(queue, from, at, times, sizes);
    }
    const ms = times.expectedMs(next.rows);
    inTime += next.to - next.from;
    busyMs += ms / freeAt.length;
    freeAt[soonest] = at + ms;
    from = next.to;
    next = undefined;
  }
  return { inTime, busyMs };
}

/** A batch in the order of shares. */
export interface FairBatch {
  readonly requests: readonly InferenceRequest[];
  readonly rows: number;
  /** In-time answers for each millisecond. */
  readonly perMs: number;
}

/** The first requests of a list that are in time together, up to a number of rows. */
export function fairBatch(
  list: readonly InferenceRequest[],
  most: number,
  now: number,
  times: InstanceTimes,
): FairBatch {
  const requests: InferenceRequest[] = [];
  let rows = 0;
  let due = Number.POSITIVE_INFINITY;
  for (const request of list) {
    const grown = rows + request.rows;
    const tightest = Math.min(due, dueOf(request));
    if (requests.length > 0 && (grown > most || now + times.plannedMs(grown) > tightest)) break;
    requests.push(request);
    rows = grown;
    due = tightest;
  }
  return { requests, rows, perMs: rows === 0 ? 0 : requests.length / times.expectedMs(rows) };
}

/** The smallest number from 1 to `most` for which a condition holds that holds for all larger ones; else `most`. */
export function smallest(most: number, holds: (value: number) => boolean): number {
  let low = 1;
  let high = most;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Expected duration of a batch between two sizes. */
export function msOf(times: InstanceTimes, rows: number): number {
  const below = Math.floor(rows);
  return times.expectedMs(below) + (rows - below) * (times.expectedMs(below + 1) - times.expectedMs(below));
}

/** Requests in an order of their own, as a queue that is read from the front. */
export class ListView implements QueuedRequestView {
  #at = 0;

  constructor(private readonly requests: readonly InferenceRequest[]) {}

  get head(): InferenceRequest | undefined {
    return this.requests[0];
  }

  after(request: InferenceRequest): InferenceRequest | undefined {
    if (this.requests[this.#at] !== request) this.#at = this.requests.indexOf(request);
    return this.requests[++this.#at];
  }
}
