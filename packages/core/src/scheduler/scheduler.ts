import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { InstanceUser } from "../instance/instance-group.js";
import type { LateCause } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { ReadHeaders } from "../request-info.js";

/** Waiting requests of a priority level. */
export interface LevelStatus {
  /** 1 is the highest; 0 for a queue without levels. */
  readonly priorityLevel: number;
  readonly queued: number;
  readonly delayed: number;
  readonly rows: number;
  /** Arrival of the oldest waiting request, on the model's clock in milliseconds. */
  readonly oldestQueueStart: number;
}

/** What a scheduler knows of requests with a time limit. */
export interface KnownLimits {
  readonly reads: ReadHeaders;
  /** When the answer is due, on the model's clock in milliseconds; infinite for a request without a limit. */
  dueOf(request: InferenceRequest): number;
  /** Name of the caller; empty if it is unknown. */
  callerOf(request: InferenceRequest): string;
  /** Why a request is late, or refused because it would be; undefined if the scheduler does not know. */
  lateCause(request: InferenceRequest): LateCause | undefined;
}

export interface SequenceCounts {
  readonly inSlots: number;
  readonly inBacklog: number;
}

/**
 * Decides which requests run together and when. It owns a request from `enqueue` until an instance takes it. A request
 * that is cancelled meanwhile is removed by its holder.
 */
export interface Scheduler extends InstanceUser {
  /**
   * Accepts a validated request. A refused request stays untouched.
   *
   * @param isMoved true for a request that another scheduler of the model has accepted: limits of the queue do not apply
   * @throws TritonError if the request is refused.
   */
  enqueue(request: InferenceRequest, isMoved?: boolean): void;
  readonly queuedCount: number;
  /** Waiting requests by priority level, for schedulers with levels; only levels that have requests. */
  readonly levels?: readonly LevelStatus[];
  readonly sequences?: SequenceCounts;
  /** Resolves when no sequence is left, for schedulers of sequences that get no new ones. */
  whenEmpty?(): Promise<void>;
  /** True if the sequence of a request is open, for schedulers of sequences. */
  hasSequence?(request: InferenceRequest): boolean;
  /**
   * Number of requests of this priority that the queue has room for; without a priority, of the priority with the most
   * room. Schedulers without a limit omit this method.
   */
  freePlaces?(priority?: number): number;
  /** Set for a scheduler that looks at time limits. */
  readonly limits?: KnownLimits | undefined;
  /** Ends all waiting for further requests, because no more will arrive. */
  hurry?(): void;
  /** Refuses new requests from now on. Waiting requests still run. */
  stop(): void;
  failQueued(error: TritonError): void;
}

export function stoppedError(request: InferenceRequest): TritonError {
  return errorFor(
    "SERVER_STOPPING",
    `${request.logPrefix}Server is stopping, scheduler for model has stopped accepting new inference requests`,
  );
}

/**
 * True for a request that other work waits for. It is accepted even while the server stops, so that the work can
 * finish.
 */
export function isPartOfWork(request: InferenceRequest): boolean {
  return request.callers.length > 0;
}

/**
 * Holds a scheduler back, once, until a number of requests have arrived: a hold for tests. As in Triton, requests that
 * are cancelled or expire meanwhile count as arrived.
 */
export class ArrivalHold {
  #missing: number;

  /** @param count requests to wait for; 0 for no hold */
  constructor(count: number) {
    this.#missing = count;
  }

  get isOver(): boolean {
    return this.#missing <= 0;
  }

  arrived(): void {
    this.#missing--;
  }

  end(): void {
    this.#missing = 0;
  }
}
