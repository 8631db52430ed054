import type { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";
import type { RequestHolder, RequestObserver } from "../request/request-observer.js";
import type { CachedOutputs } from "./response-cache.js";

/** Holds a request while the cache looks for its answer: one that is given up is noticed when the lookup is over. */
export const LOOKUP: RequestHolder<PendingRequest> = { remove() {} };

/** Requests that wait for an equal one under way. */
export class WaitingRequests implements RequestHolder<PendingRequest> {
  readonly #requests = new Set<PendingRequest>();

  get size(): number {
    return this.#requests.size;
  }

  add(request: PendingRequest): void {
    this.#requests.add(request);
    request.holder = this;
  }

  remove(request: PendingRequest): void {
    this.#requests.delete(request);
    request.holder = undefined;
  }

  /** Takes the request that has waited longest; undefined when none waits. */
  takeFirst(): PendingRequest | undefined {
    const first = this.#requests.values().next().value;
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Takes all of them, in the order in which they came. */
  takeAll(): readonly PendingRequest[] {
    const all = [...this.#requests];
    for (const request of all) this.remove(request);
    return all;
  }
}

/** Hears what comes of requests whose answers are to be kept. */
export interface RunsOwner {
  /** The model has made outputs, of which the request may want only some. */
  computed(request: PendingRequest, run: CachedRun, outputs: CachedOutputs): void;
  /** The request has ended with an error. */
  failed(run: CachedRun): void;
}

/** A request whose answer is to be kept, and for which equal ones wait. */
export class CachedRun implements RequestObserver<PendingRequest> {
  readonly #owner: RunsOwner;

  constructor(
    owner: RunsOwner,
    readonly key: string,
    /** How long it took to find that the answer is unknown. */
    readonly lookupMs: number,
  ) {
    this.#owner = owner;
  }

  outputs(request: PendingRequest, outputs: CachedOutputs): void {
    this.#owner.computed(request, this, outputs);
  }

  settled(_request: PendingRequest, error: TritonError | undefined): void {
    if (error !== undefined) this.#owner.failed(this);
  }
}
