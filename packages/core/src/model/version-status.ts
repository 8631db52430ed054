import type { ModelConfig } from "@tritonjs/protocol";
import type { Cut, CutReason } from "../observe/statistics.js";

/** Triton's states of a model version. */
export type ModelState = "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING";

/** A version of a model as look-ups and the repository index see it. */
export interface RegisteredVersion {
  readonly name: string;
  /** Distinguishes models of the same name: the path of the repository if namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly version: number;
  readonly state: ModelState;
  /** Why the version is not READY, or the latest failure since it became READY. */
  readonly reason: string;
  readonly isEnsemble: boolean;
  /** Why a READY version refuses all requests: none of its instances could come back after a crash. */
  readonly crashReason?: string | undefined;
  /** Undefined for a version that was never in service. */
  readonly config?: ModelConfig;
}

/** A version that cannot serve: it is loading, could not be created, or is unloaded. */
export class AbsentVersion implements RegisteredVersion {
  readonly isEnsemble = false;

  constructor(
    readonly name: string,
    readonly namespace: string,
    readonly version: number,
    readonly state: ModelState,
    readonly reason: string,
  ) {}
}

/** Requests that wait at one priority level. */
export interface QueueLevelSnapshot {
  /** 1 is the highest; 0 for a model without levels. */
  readonly priorityLevel: number;
  /** Waiting requests, delayed ones included. */
  readonly queued: number;
  /** Requests whose timeout passed under the DELAY action. */
  readonly delayed: number;
  readonly rows: number;
  /** Time that the oldest request has waited. */
  readonly oldestAgeMicroseconds: number;
}

/** A formed batch that waits for an instance or runs. */
export interface PayloadSnapshot {
  readonly requests: number;
  readonly rows: number;
  /** Time since its oldest request arrived. */
  readonly ageMicroseconds: number;
  /** Reason for its size; undefined for a model without a batcher. A waiting batch may still grow. */
  readonly cut: CutReason | undefined;
}

/** Batches of one instance. */
export interface InstanceQueueSnapshot {
  readonly name: string;
  /** The batch that it runs, and the one that it starts next, if it takes batches ahead. */
  readonly running: readonly PayloadSnapshot[];
  /** Batches that wait for this instance alone, like those of sequences. */
  readonly waiting: readonly PayloadSnapshot[];
}

/** Snapshot of a model's waiting and running requests. */
export interface QueueSnapshot {
  /** Requests that wait and are in no batch yet. */
  readonly queued: number;
  /** Waiting requests by priority level, for models with a dynamic batcher; only levels that have requests. */
  readonly levels: readonly QueueLevelSnapshot[];
  /** Batches that wait for any instance, next one first. */
  readonly payloads: readonly PayloadSnapshot[];
  readonly instances: readonly InstanceQueueSnapshot[];
  /** Batches that instances have taken, by the reason for their size. */
  readonly cuts: Readonly<Record<CutReason, number>>;
  /** The most recent of these batches, latest first; at most 16. */
  readonly recentCuts: readonly Cut[];
}
