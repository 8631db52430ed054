/**
 * One sequence, from its START to its END. All its requests share the same object, so it can be the key of the state
 * that a model keeps for the sequence.
 */
export interface SequenceInfo {
  readonly correlationId: bigint | string;
  /** Slot of the instance that the sequence holds. */
  readonly slot: number;
}

/** The sequence that a request belongs to, and the position of the request in it. */
export interface SequencePlace {
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
}

/** Reason why a sequence ended without its END. */
export type EvictionReason = "idle" | "restarted" | "cancelled" | "failed" | "stopped";

/** Is called for a sequence that ended without its END, once the model has seen its last request. */
export type EvictionListener = (sequence: SequenceInfo, reason: EvictionReason) => void;
