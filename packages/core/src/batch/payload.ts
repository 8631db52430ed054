import type { TritonError } from "@tritonjs/protocol";
import type { BatchKey } from "../config/options/variable-length-options.js";
import type { CutReason } from "../observe/cut-log.js";
import type { PendingRequest } from "../request/pending-request.js";
import type { RequestHolder } from "../request/request-observer.js";
import type { RequiredEqualInputs } from "./required-equal-inputs.js";

/**
 * Requests that run together. A payload grows until an instance takes it.
 *
 * ```
 * forming --enqueue--> queued --an instance takes it, or its last request leaves--> taken
 *    ^  requests join   ^
 * ```
 */
export class Payload implements RequestHolder<PendingRequest> {
  state: "forming" | "queued" | "taken" = "forming";
  /** True if no more requests join it, so that an instance may take it while it is still busy. */
  complete = false;
  /** True if the requests behind it do not fit, so no other payload may be merged into it. */
  saturated = false;
  /** Arrival of its oldest request, in milliseconds on the model's clock. */
  oldestQueueStart = Number.POSITIVE_INFINITY;
  /** Inputs in which all its requests must agree; undefined if none are compared. */
  requiredEqual: RequiredEqualInputs | undefined;
  /** Reason why it has no more requests, if a batcher formed it. */
  cut: CutReason | undefined;
  /** Largest total cost of its requests. */
  maxCost = Number.POSITIVE_INFINITY;
  /** Called when its last request is cancelled while the payload waits. */
  onEmpty: ((payload: Payload) => void) | undefined;
  /** Neighbours in the queue of payloads. */
  next: Payload | undefined;
  previous: Payload | undefined;
  /** A set, because it keeps the order and removes a request in one step. */
  readonly #requests = new Set<PendingRequest>();
  #batchSize = 0;
  #cost = 0;

  /** Requests in batch order, as a new list. */
  get requests(): readonly PendingRequest[] {
    return [...this.#requests];
  }

  get requestCount(): number {
    return this.#requests.size;
  }

  /** Rows of the batch. */
  get batchSize(): number {
    return this.#batchSize;
  }

  /** Total cost of its requests. */
  get cost(): number {
    return this.#cost;
  }

  add(request: PendingRequest): void {
    this.#requests.add(request);
    this.#batchSize += request.rows;
    this.#cost += request.batchCost;
    this.oldestQueueStart = Math.min(this.oldestQueueStart, request.batcherStart ?? request.queueStart);
    request.holder = this;
  }

  /** Removes a waiting request that was cancelled, which makes its rows available. */
  remove(request: PendingRequest): void {
    this.#requests.delete(request);
    this.#batchSize -= request.rows;
    this.#cost -= request.batchCost;
    if (this.#requests.size === 0) this.onEmpty?.(this);
  }

  /** True if this payload can take the requests of another one. */
  accepts(other: Payload): boolean {
    const first = other.#first!;
    if (this.#key !== other.#key || this.#cost + other.#cost > this.maxCost) return false;
    return this.requiredEqual === undefined || this.requiredEqual.holdsFor(first.inputs);
  }

  /** Takes all requests of another payload. */
  absorb(other: Payload): void {
    for (const request of other.#requests) this.add(request);
    this.cut = other.cut;
    other.#requests.clear();
    other.#batchSize = 0;
    other.#cost = 0;
  }

  get #first(): PendingRequest | undefined {
    return this.#requests.values().next().value;
  }

  get #key(): BatchKey | undefined {
    return this.#first?.batchKey;
  }

  /** Fails all remaining requests. */
  fail(error: TritonError): void {
    for (const request of [...this.#requests]) request.cancel(error);
  }
}

/** Placeholder for no payload. */
export const NO_PAYLOAD = new Payload();
NO_PAYLOAD.state = "taken";
