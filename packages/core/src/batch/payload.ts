import type { TritonError } from "../errors/triton-error.js";
import type { InferenceRequest, RequestHolder } from "../request/inference-request.js";
import type { RequiredEqualInputs } from "./required-equal-inputs.js";

/**
 * Requests that run together. A payload grows until an instance takes it.
 *
 * ```
 * forming --enqueue--> queued --an instance takes it, or its last request leaves--> taken
 *    ^  requests join   ^
 * ```
 */
export class Payload implements RequestHolder {
  state: "forming" | "queued" | "taken" = "forming";
  /** The requests behind it do not fit: no instance may join another payload to it. */
  saturated = false;
  /** When the oldest of its requests came, in milliseconds on the model's clock. */
  oldestQueueStart = Number.POSITIVE_INFINITY;
  /** What all requests of the payload must have in common; undefined when nothing need be compared. */
  requiredEqual: RequiredEqualInputs | undefined;
  /** Called when the last request is given up while the payload waits. */
  onEmpty: ((payload: Payload) => void) | undefined;
  #requests: InferenceRequest[] = [];
  #batchSize = 0;

  /** Requests in batch order. */
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
    this.oldestQueueStart = Math.min(this.oldestQueueStart, request.batcherStart ?? request.queueStart);
    request.holder = this;
  }

  /** A waiting request was given up: it leaves, and its rows are free for others. */
  remove(request: InferenceRequest): void {
    this.#requests.splice(this.#requests.indexOf(request), 1);
    this.#batchSize -= request.rows;
    if (this.#requests.length === 0) this.onEmpty?.(this);
  }

  /** True when the requests of another payload could run in this one. */
  accepts(other: Payload): boolean {
    return this.requiredEqual === undefined || this.requiredEqual.holdsFor(other.#requests[0]!.inputs);
  }

  /** Takes over the requests of another payload. */
  absorb(other: Payload): void {
    for (const request of other.#requests) this.add(request);
    other.#requests = [];
    other.#batchSize = 0;
  }

  /** Ends every request that is left. */
  fail(error: TritonError): void {
    for (const request of [...this.#requests]) request.cancel(error);
  }
}
