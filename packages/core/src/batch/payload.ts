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
  /** Nothing more joins it: an instance may have it while it is still at work. */
  complete = false;
  /** The requests behind it do not fit: no instance may join another payload to it. */
  saturated = false;
  /** When the oldest of its requests came, in milliseconds on the model's clock. */
  oldestQueueStart = Number.POSITIVE_INFINITY;
  /** What all requests of the payload must have in common; undefined when nothing need be compared. */
  requiredEqual: RequiredEqualInputs | undefined;
  /** Why it has these requests and not more, as far as a batcher made it. */
  cut: CutReason | undefined;
  /** Most that its requests may cost together. */
  maxCost = Number.POSITIVE_INFINITY;
  /** Called when the last request is given up while the payload waits. */
  onEmpty: ((payload: Payload) => void) | undefined;
  /** Neighbours in the queue of payloads. */
  next: Payload | undefined;
  previous: Payload | undefined;
  /** A set keeps the order, and lets any number of requests leave in one step each. */
  readonly #requests = new Set<PendingRequest>();
  #batchSize = 0;
  #cost = 0;

  /** Requests in batch order. A new list each time. */
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

  /** What its requests cost together. */
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

  /** A waiting request was given up: it leaves, and its rows are free for others. */
  remove(request: PendingRequest): void {
    this.#requests.delete(request);
    this.#batchSize -= request.rows;
    this.#cost -= request.batchCost;
    if (this.#requests.size === 0) this.onEmpty?.(this);
  }

  /** True when the requests of another payload could run in this one. */
  accepts(other: Payload): boolean {
    const first = other.#first!;
    if (this.#key !== other.#key || this.#cost + other.#cost > this.maxCost) return false;
    return this.requiredEqual === undefined || this.requiredEqual.holdsFor(first.inputs);
  }

  /** Takes over the requests of another payload. */
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

  /** Ends every request that is left. */
  fail(error: TritonError): void {
    for (const request of [...this.#requests]) request.cancel(error);
  }
}

/** Stands for a payload that is gone. */
export const NO_PAYLOAD = new Payload();
NO_PAYLOAD.state = "taken";
