import type { Payload } from "../batch/payload.js";
import type { LateCause } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { classOf, OVERLOAD } from "./late-causes.js";
import type { LearnedWork } from "./learned-work.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/** Requests that are remembered after they have run. */
const REMEMBERED = 256;
/** Time after which an arrival counts a third of its load: this many mean times of a request, and at least a second. */
const LOAD_WINDOW = 6;
const LEAST_WINDOW_MS = 1000;
/** A request is slow if it takes this many times longer than expected. */
const SLOW = 1.3;
/** Share of a wait from which on something is its cause. */
const MOST = 0.5;

/** A request that runs in a lane, or has run. */
interface LaneRun {
  /** Dropped once it has ended: a model must not keep what it has answered. */
  payload: Payload | undefined;
  readonly name: string;
  readonly startedAt: number;
  /** Expected duration when it began; undefined while too little was known. */
  readonly expectedMs: number | undefined;
  endedAt: number;
}

/**
 * Finds out why a request that runs by itself in a lane is late: a text of continuous batching.
 *
 * ```
 * arrival ---- wait: what ran in the lanes meanwhile? ---- start ---- as long as expected? ---- end
 * ```
 */
export class LaneCauses {
  readonly #queue: UrgencyQueue;
  readonly #work: LearnedWork;
  readonly #runs: LaneRun[] = [];
  /** Milliseconds of lanes that arrived for each millisecond lately. */
  #load = 0;
  #arrivedAt = Number.NEGATIVE_INFINITY;

  constructor(queue: UrgencyQueue, work: LearnedWork) {
    this.#queue = queue;
    this.#work = work;
  }

  arrived(expectedMs: number, now: number): void {
    this.#load = this.#loadAt(now) + expectedMs / this.#windowMs;
    this.#arrivedAt = now;
  }

  started(payload: Payload, request: InferenceRequest, expectedMs: number, now: number): void {
    this.#runs.push({
      payload,
      name: classOf(request, this.#queue.classLevelOf(request)),
      startedAt: now,
      expectedMs: this.#work.known ? expectedMs : undefined,
      endedAt: Number.POSITIVE_INFINITY,
    });
    // Those that run stay.
    if (this.#runs.length > REMEMBERED) this.#forget();
  }

  ended(payload: Payload, now: number): void {
    const run = this.#runs.findLast((one) => one.payload === payload);
    if (run === undefined) return;
    run.endedAt = now;
    run.payload = undefined;
  }

  /**
   * The cause of a request that is late, or refused because it would be.
   *
   * @param lanes number of requests that run at a time
   */
  causeOf(request: InferenceRequest, lanes: number, now: number): LateCause {
    const run = this.#runs.findLast(({ payload }) => payload?.requests.includes(request));
    if (run === undefined ? !this.#work.known : run.expectedMs === undefined) return "cold";
    const { due, queueStart } = request;
    const { expectedMs: usualMs, leastMs } = this.#work.of(request);
    if (run === undefined) {
      // Too little time even without a queue: the model is slow for such a limit.
      if (queueStart + leastMs > due) return "slow_model";
      return this.#causeOfWait(request, now, lanes);
    }
    const expectedMs = run.expectedMs ?? usualMs;
    if (run.startedAt + expectedMs <= due) return "slow_model";
    if (queueStart + expectedMs > due) return "slow_model";
    return this.#causeOfWait(request, run.startedAt, lanes);
  }

  /** @param until when the request started, or was given up */
  #causeOfWait(request: InferenceRequest, until: number, lanes: number): LateCause {
    const { queueStart } = request;
    const isWaiting = request.holder === this.#queue || until === queueStart;
    const own = classOf(request, this.#queue.classLevelOf(request));
    let [waitMs, busyMs, otherMs, excessMs] = [until - queueStart, 0, 0, 0];
    const add = (ms: number, name: string): void => {
      busyMs += ms / lanes;
      if (name !== own) otherMs += ms / lanes;
    };
    for (const { startedAt, endedAt, expectedMs, name } of this.#runs) {
      if (startedAt >= until || endedAt <= queueStart) {
        // A request that is refused as it arrives waits for those that run.
        if (!isWaiting || endedAt < Number.POSITIVE_INFINITY) continue;
      }
      add(Math.max(0, Math.min(endedAt, until) - Math.max(startedAt, queueStart)), name);
      if (expectedMs === undefined) continue;
      const tookMs = Math.min(endedAt, until) - startedAt;
      if (tookMs > SLOW * expectedMs) excessMs += (tookMs - expectedMs) / lanes;
      else if (isWaiting && endedAt === Number.POSITIVE_INFINITY) {
        const leftMs = Math.max(0, expectedMs - tookMs);
        waitMs += leftMs / lanes;
        add(leftMs, name);
      }
    }
    for (let i = this.#queue.countBefore(request.order) - 1; isWaiting && i >= 0; i--) {
      const before = this.#queue.dated(i);
      if (before === request) continue;
      waitMs += before.batchCost / lanes;
      add(before.batchCost, classOf(before, this.#queue.classLevelOf(before)));
    }
    if (excessMs > MOST * waitMs) return "slow_model";
    if (this.#loadAt(until) > OVERLOAD * lanes) return "overload";
    if (waitMs > 0 && busyMs < MOST * waitMs) return "other_model";
    return otherMs > MOST * busyMs ? "other_class" : "queue";
  }

  get #windowMs(): number {
    return Math.max(LEAST_WINDOW_MS, LOAD_WINDOW * this.#work.meanMs);
  }

  #loadAt(now: number): number {
    return this.#load * Math.exp((this.#arrivedAt - now) / this.#windowMs);
  }

  #forget(): void {
    const oldest = this.#runs.findIndex(({ payload }) => payload === undefined);
    this.#runs.splice(Math.max(0, oldest), 1);
  }
}
