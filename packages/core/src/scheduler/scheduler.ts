import type { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";
import type { LevelStatus } from "./priority-queue.js";

/**
 * Decides which requests run together and when. It owns a request from `enqueue` until an instance takes it;
 * one that is given up meanwhile is removed by its holder.
 */
export interface Scheduler {
  /** Takes a validated request; throws `TritonError` when it is refused, which leaves the request untouched. */
  enqueue(request: PendingRequest): void;
  /** Requests that wait and have not been handed to the instances. */
  readonly queuedCount: number;
  /** The same by priority level, for schedulers that have levels; only those at which requests wait. */
  readonly levels?: readonly LevelStatus[];
  /**
   * Whether a request of this priority would be refused for want of room; without a priority, whether one of any
   * priority would. Schedulers without a limit leave it out.
   */
  isFull?(priority?: number): boolean;
  /** Refuses new requests from now on. Those that wait still run. */
  stop(): void;
  /** Fails every request that waits. */
  failQueued(error: TritonError): void;
}
