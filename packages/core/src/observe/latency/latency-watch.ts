import type { ExecutionTimes } from "../duration.js";
import { LatencyCounts } from "./latency-counts.js";

/** Requests between two looks that make quantiles precise enough. */
const ENOUGH = 4096;

/** Largest distance of the requests that are counted. */
const MOST_SKIPPED = 255;

/**
 * Latencies of a model's answered requests, counted while somebody watches them. A model that answers many requests
 * between two looks counts only some of them, so that the watch costs the same at any rate.
 */
export class LatencyWatch {
  /** From arrival to answer. */
  readonly request = new LatencyCounts();
  /** From arrival to the start of the batch. */
  readonly queue = new LatencyCounts();
  /** From the start of the batch to its end. */
  readonly compute = new LatencyCounts();
  /** Every nth request is counted. */
  #stride = 1;
  /** Requests up to the next one that is counted. */
  #left = 1;
  #countedSinceLook = 0;

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
    const answered = this.#countedSinceLook * this.#stride;
    this.#countedSinceLook = 0;
    // An odd distance meets every place of a batch in turn, because batch sizes are seldom odd.
    this.#stride = Math.min(MOST_SKIPPED, Math.floor(answered / ENOUGH) | 1);
  }

  #count(queueMs: number, computeMs: number, requestMs: number): void {
    this.#left = this.#stride;
    this.#countedSinceLook++;
    this.request.add(requestMs);
    this.queue.add(queueMs);
    this.compute.add(computeMs);
  }
}
