import type { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";
import type { RequestHolder, RequestObserver } from "../request/request-observer.js";
import type { CachedOutputs } from "./response-cache.js";

/** Holds a request during the lookup of its answer. A cancelled request is noticed when the lookup is over. */
export const LOOKUP: RequestHolder<PendingRequest> = { remove() {} };

/** Requests that wait for an equal one in flight. */
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

  /** Takes the request that has waited longest; undefined if none waits. */
  takeFirst(): PendingRequest | undefined {
    const first = this.#requests.values().next().value;
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Takes all requests, in order of arrival. */
  takeAll(): readonly PendingRequest[] {
    const all = [...this.#requests];
    for (const request of all) this.remove(request);
    return all;
  }
}

/** Is notified of the results of requests whose answers are to be cached. */
export interface RunsOwner {
  /** The model has produced outputs; the request may want only some of them. */
  computed(request: PendingRequest, run: CachedRun, outputs: CachedOutputs): void;
  /** The request has ended with an error. */
  failed(run: CachedRun): void;
}

/** A request in flight whose answer is to be cached, and which equal requests wait for. */
export class CachedRun implements RequestObserver<PendingRequest> {
  readonly #owner: RunsOwner;

  constructor(
    owner: RunsOwner,
    readonly key: string,
    /** Milliseconds of the lookup that found no answer. */
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
