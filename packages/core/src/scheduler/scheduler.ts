import type { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";
import type { LevelStatus } from "./priority-queue.js";

/** Sequences of a model, by where they are. */
export interface SequenceCounts {
  /** Sequences with a slot at an instance. */
  readonly inSlots: number;
  /** Sequences that wait for a slot. */
  readonly inBacklog: number;
}

/**
 * Decides which requests run together and when. It owns a request from `enqueue` until an instance takes it. A request
 * that is cancelled meanwhile is removed by its holder.
 */
export interface Scheduler {
  /**
   * Accepts a validated request. A refused request stays untouched.
   * @throws TritonError if the request is refused.
   */
  enqueue(request: PendingRequest): void;
  /** Number of waiting requests that have not been handed to the instances. */
  readonly queuedCount: number;
  /** Waiting requests by priority level, for schedulers with levels; only levels that have requests. */
  readonly levels?: readonly LevelStatus[];
  /** Live sequences, for schedulers of sequences. */
  readonly sequences?: SequenceCounts;
  /**
   * Number of requests of this priority that the queue has room for; without a priority, of the priority with the most
   * room. Schedulers without a limit omit this method.
   */
  freePlaces?(priority?: number): number;
  /** Refuses new requests from now on. Waiting requests still run. */
  stop(): void;
  /** Fails every waiting request. */
  failQueued(error: TritonError): void;
}
