import type { InferenceRequest } from "../request/inference-request.js";
import { LinkedList } from "../system/collections.js";
import type { LearnedWork } from "./learned-work.js";
import type { RequestOrder } from "./urgency-queue.js";

/**
 * A request runs next once it has waited this many times as long as 99% of the requests would have waited at most if
 * they ran in the order of arrival.
 */
const MOST_WAIT = 1.7;
/** Beside deadlines, a request without one is due after this many times its expected time. */
const SOFT_LIMIT = 10;
/** Number of waits that are looked at. */
const REMEMBERED = 512;
/** Number of requests after which the longest wait is looked for again. */
const LOOK_EVERY = 16;

/**
 * Requests in the order of their expected times, the shortest first. It also keeps them in the order of arrival, because
 * a request that has waited long must not wait any more.
 *
 * ```
 * by time:     8 ms | 9 ms | 120 ms | ...       next, unless the oldest has waited too long
 * by arrival:  oldest | ... | newest
 * ```
 *
 * Beside requests with deadlines, the order is that of deadlines, and a request without one has a soft one by its time.
 *
 * How long is too long depends on the load: with each request that arrives, the wait is noted that it would have had in
 * the order of arrival, because the work in front of it is the same in any order. It is at least the time that all waiting
 * requests take: in a burst after a quiet time, too.
 */
export class ShortestFirst implements RequestOrder {
  readonly #work: LearnedWork;
  readonly #hasDeadlines: boolean;
  readonly #byArrival = new LinkedList<InferenceRequest>();
  readonly #waits: number[] = [];
  #count = 0;
  #mostWaitMs = 0;
  #lanes = 1;
  /** Milliseconds of work that the waiting requests are expected to be. */
  waitingMs = 0;

  constructor(work: LearnedWork, hasDeadlines: boolean) {
    this.#work = work;
    this.#hasDeadlines = hasDeadlines;
  }

  /** The request that has waited too long; undefined if none has, or the order itself bounds the wait. */
  overdue(now: number): InferenceRequest | undefined {
    const { head } = this.#byArrival;
    if (this.#hasDeadlines || head === undefined) return undefined;
    const mostMs = Math.max(this.#mostWaitMs, this.waitingMs / this.#lanes);
    return now - head.queueStart > mostMs ? head : undefined;
  }

  /**
   * Notes how long a request that arrives would wait in the order of arrival.
   *
   * @param laneFreeMs time until one of those that run has ended
   * @param lanes number of those that run at a time
   */
  noteWait(laneFreeMs: number, lanes: number): void {
    this.#lanes = lanes;
    this.#waits[this.#count++ % REMEMBERED] = laneFreeMs + this.waitingMs / lanes;
    if (this.#count % LOOK_EVERY !== 0 && this.#count > LOOK_EVERY) return;
    const sorted = Float64Array.from(this.#waits).sort();
    this.#mostWaitMs = MOST_WAIT * sorted[Math.floor(0.99 * (sorted.length - 1))]!;
  }

  place(request: InferenceRequest): void {
    const { expectedMs } = this.#work.of(request);
    request.batchCost = expectedMs;
    const { due, queueStart } = request;
    if (!this.#hasDeadlines) request.order = expectedMs;
    else request.order = due < Number.POSITIVE_INFINITY ? due : queueStart + SOFT_LIMIT * expectedMs;
  }

  joined(request: InferenceRequest): void {
    this.#byArrival.push(request);
    this.waitingMs += request.batchCost;
  }

  ran(request: InferenceRequest): void {
    this.left(request);
  }

  left(request: InferenceRequest): void {
    this.#byArrival.remove(request);
    // Sums of fractions would drift.
    this.waitingMs = this.#byArrival.size === 0 ? 0 : this.waitingMs - request.batchCost;
  }
}
