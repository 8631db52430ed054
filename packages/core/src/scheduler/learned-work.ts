import type { InferenceRequest } from "../request/inference-request.js";
import { lengthLimitOf } from "../request-info.js";
import { callerOf } from "./fair-shares.js";
import { type DurationFit, expectedMs, learnDuration } from "./learned-times.js";

/** Number of requests from which on the times count as known. */
const ENOUGH_REQUESTS = 5;
/** Number of requests of a class after which they count more than what is known of all classes. */
const CLASS_WEIGHT = 3;
/** Steps of the share that few requests fall below, for a request that took less, and for one that took more. */
const LOW_STEP_DOWN = 0.3;
const LOW_STEP_UP = 0.015;
/** Number of classes that are remembered. */
const MOST_CLASSES = 1024;

/** A request as it is known before it runs. */
export interface ForeseenWork {
  /** Milliseconds that it takes an instance. */
  readonly expectedMs: number;
  /** Milliseconds that few requests of its class fall below. */
  readonly leastMs: number;
  /** Learns how long it took. */
  took(ms: number): void;
}

/**
 * Learns how long requests take that run by themselves: texts, whose length is known only when they end. The time is a
 * line over the limit of the length (`max_tokens`), for each caller and priority. A class that has few requests yet is
 * predicted by those of all classes.
 */
export class LearnedWork {
  readonly #limited = new WorkTimes();
  readonly #unlimited = new WorkTimes();
  readonly #byClass = new Map<string, WorkTimes>();

  /** True if enough requests have run. */
  get known(): boolean {
    return this.#limited.count + this.#unlimited.count >= ENOUGH_REQUESTS;
  }

  /** Mean of all requests, in milliseconds; 0 while there were none. */
  get meanMs(): number {
    const [one, other] = [this.#limited, this.#unlimited];
    const count = one.count + other.count;
    return count === 0 ? 0 : (one.count * one.meanMs + other.count * other.meanMs) / count;
  }

  of(request: InferenceRequest): ForeseenWork {
    const limit = lengthLimitOf(request);
    const name = `${limit === undefined} ${request.priority} ${callerOf(request, "caller")}`;
    const [all, others] =
      limit === undefined ? [this.#unlimited, this.#limited] : [this.#limited, this.#unlimited];
    const own = this.#byClass.get(name);
    const size = limit ?? 1;
    const weight = own === undefined ? 0 : own.count / (own.count + CLASS_WEIGHT);
    // Texts of the other kind say at least how long texts are.
    const byAll = all.count > 0 ? all.expectedMs(size) : others.meanMs;
    const byOwn = own?.expectedMs(size) ?? 0;
    const ms = weight * byOwn + (1 - weight) * byAll;
    return {
      expectedMs: ms,
      leastMs: Math.min(1, own?.lowShare ?? all.lowShare) * ms,
      took: (taken) => this.#learn(all, name, size, taken),
    };
  }

  #learn(all: WorkTimes, name: string, size: number, ms: number): void {
    all.learn(size, ms);
    const own = this.#byClass.get(name) ?? new WorkTimes();
    own.learn(size, ms);
    // The classes that were in use last are at the end.
    this.#byClass.delete(name);
    this.#byClass.set(name, own);
    if (this.#byClass.size > MOST_CLASSES) this.#byClass.delete(this.#byClass.keys().next().value!);
  }
}

/** Times of the requests of a class. */
class WorkTimes {
  #fit: DurationFit | undefined;
  /** Share of the expected time that few requests fall below. */
  lowShare = 0;

  get count(): number {
    return this.#fit?.observations ?? 0;
  }

  get meanMs(): number {
    return this.#fit?.meanMs ?? 0;
  }

  expectedMs(size: number): number {
    return this.#fit === undefined ? 0 : expectedMs(this.#fit, size);
  }

  learn(size: number, ms: number): void {
    if (this.#fit !== undefined) {
      const share = ms / Math.max(this.expectedMs(size), Number.MIN_VALUE);
      if (this.#fit.observations === 1) this.lowShare = share;
      this.lowShare += (share < this.lowShare ? LOW_STEP_DOWN : LOW_STEP_UP) * (share - this.lowShare);
    }
    this.#fit = learnDuration(this.#fit, size, ms);
  }
}
