import type { ExecutionTimes } from "../duration.js";
import { LatencyCounts } from "./latency-counts.js";

/** Requests counted between two looks that make quantiles precise enough. */
const ENOUGH = 1024;

/** Largest distance of the requests that are counted. */
const MOST_SKIPPED = 1023;

/**
 * Latencies of a model's answered requests, counted while somebody watches them. Between two looks, the first requests
 * are all counted, and later ones more and more seldom. So the watch costs the same at any rate.
 */
export class LatencyWatch {
  /** From arrival to answer. */
  readonly request = new LatencyCounts();
  /** From arrival to the start of the batch. */
  readonly queue = new LatencyCounts();
  /** From the start of the batch to its end. */
  readonly compute = new LatencyCounts();
  /** Every nth request is counted. n is odd, so that it meets every place of an even batch in turn. */
  #stride = 1;
  /** Requests up to the next one that is counted. */
  #left = 1;
  #countedSinceLook = 0;
  #answeredSinceLook = 0;

  success(queueStart: number, { start, end }: ExecutionTimes): void {
    if (--this.#left > 0) return;
    this.#count(start - queueStart, end - start, end - queueStart);
  }

  add(queueMs: number, computeMs: number, requestMs: number): void {
    if (--this.#left > 0) return;
    this.#count(queueMs, computeMs, requestMs);
  }

  /** Records that a viewer looks at the counts, and chooses which requests count until its next look. */
  looked(): void {
    this.#stride = Math.min(MOST_SKIPPED, Math.floor(this.#answeredSinceLook / ENOUGH) | 1);
    this.#left = Math.min(this.#left, this.#stride);
    this.#countedSinceLook = 0;
    this.#answeredSinceLook = 0;
  }

  #count(queueMs: number, computeMs: number, requestMs: number): void {
    this.#answeredSinceLook += this.#stride;
    this.#countedSinceLook++;
    // More requests than before the last look: the distance grows, so that the cost does not.
    if (this.#countedSinceLook % ENOUGH === 0) this.#stride = Math.min(MOST_SKIPPED, this.#stride * 4 + 1);
    this.#left = this.#stride;
    this.request.add(requestMs);
    this.queue.add(queueMs);
    this.compute.add(computeMs);
  }
}
