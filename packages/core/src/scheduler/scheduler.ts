import type { TritonError } from "../errors/triton-error.js";
import type { InferenceRequest } from "../request/inference-request.js";

/**
 * Decides which requests run together and when. It owns a request from `enqueue` until an instance takes it;
 * one that is given up meanwhile is removed by its holder.
 */
export interface Scheduler {
  /** Takes a validated request; throws `TritonError` when it is refused, which leaves the request untouched. */
  enqueue(request: InferenceRequest): void;
  /** Requests that wait and have not been handed to the instances. */
  readonly queuedCount: number;
  /** Refuses new requests from now on. Those that wait still run. */
  stop(): void;
  /** Fails every request that waits. */
  failQueued(error: TritonError): void;
}
