import type { InferenceRequest } from "../request/inference-request.js";

/**
 * Requests that run together. A payload grows until an instance takes it, unless it is saturated.
 *
 * ```
 * forming --enqueue--> queued --instance takes it--> executing
 *    ^  requests join  ^
 * ```
 */
export class Payload {
  state: "forming" | "queued" | "executing" = "forming";
  /** No more requests may join. */
  saturated = false;
  /** When the oldest of its requests came, in milliseconds on the model's clock. */
  oldestQueueStart = Number.POSITIVE_INFINITY;
  #requests: InferenceRequest[] = [];
  #batchSize = 0;

  /** Requests in batch order. Some may have been given up: an instance leaves those out. */
  get requests(): readonly InferenceRequest[] {
    return this.#requests;
  }

  /** Rows of the batch. */
  get batchSize(): number {
    return this.#batchSize;
  }

  add(request: InferenceRequest): void {
    this.#requests.push(request);
    this.#batchSize += request.rows;
    this.oldestQueueStart = Math.min(this.oldestQueueStart, request.queueStart);
    request.holder = this;
  }

  /** A waiting request was given up: it leaves, and its rows are free for others. */
  remove(request: InferenceRequest): void {
    const index = this.#requests.indexOf(request);
    if (index < 0) return;
    this.#requests.splice(index, 1);
    this.#batchSize -= request.rows;
  }

  /** Takes over the requests of another payload. */
  absorb(other: Payload): void {
    for (const request of other.#requests) this.add(request);
    other.#requests = [];
    other.#batchSize = 0;
  }
}
