/**
 * One sequence, from its START to its END: the same object for all of its requests, so that it can be the key of
 * what a model keeps for the sequence.
 */
export interface SequenceInfo {
  readonly correlationId: bigint | string;
  /** Slot of the instance that the sequence holds. */
  readonly slot: number;
}

/** The sequence that a request belongs to, and where in it the request stands. */
export interface SequencePlace {
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
}

/** Why a sequence is over without its END. */
export type EvictionReason = "idle" | "restarted" | "cancelled" | "failed" | "stopped";

/** Hears of sequences that are over without their END, once the model has seen their last request. */
export type EvictionListener = (sequence: SequenceInfo, reason: EvictionReason) => void;
