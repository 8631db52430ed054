import type { Parameters, Tensor } from "@tritonjs/protocol";

/** Properties of one request without its tensors. */
export interface RequestInfo extends SequencePlace {
  /** Id that the client set, or an empty string. */
  readonly id: string;
  readonly parameters: Parameters;
  /** 0 for the default level, 1 for the highest. */
  readonly priority: number;
  /** Longest wait in the queue that the client allows; 0 for any. */
  readonly queueTimeoutMicroseconds: number;
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  /** The sequence of the request; undefined for a model without sequences and for null requests. */
  readonly sequence: SequenceInfo | undefined;
  /** False for a null request, which fills an empty slot of a sequence batch; its outputs are discarded. */
  readonly ready: boolean;
  /** Outputs that the client asked for; empty for all. */
  readonly requestedOutputs: readonly string[];
  /** Rows of this request along the batch axis; 0 for a model without one. */
  readonly batchSize: number;
  /** W3C header `traceparent` for services that work on behalf of the request; undefined if it has no span. */
  readonly traceparent?: string | undefined;
}

/** Copies the properties of a request, and nothing else, for callbacks and workers. */
export function requestInfo(request: RequestInfo): RequestInfo {
  return {
    id: request.id,
    parameters: request.parameters,
    priority: request.priority,
    queueTimeoutMicroseconds: request.queueTimeoutMicroseconds,
    correlationId: request.correlationId,
    sequenceStart: request.sequenceStart,
    sequenceEnd: request.sequenceEnd,
    sequence: request.sequence,
    ready: request.ready,
    requestedOutputs: request.requestedOutputs,
    batchSize: request.batchSize,
    ...(request.traceparent !== undefined && { traceparent: request.traceparent }),
  };
}

/** The asynchronous context of a request. */
export interface RequestScope {
  /**
   * Calls `fn` in the asynchronous context of the code that sent the request. An `AsyncLocalStorage` has the same value
   * there as when the request was made. In a worker it is a plain call, because asynchronous contexts do not cross
   * threads.
   *
   * @example
   * ```ts
   * const inferFunc = (requests) =>
   *   requests.map((request) => request.runInContext(() => answer(request.inputs, tenant.getStore())));
   * ```
   */
  runInContext<T>(fn: () => T): T;
}

/** A request as an executor sees it, read-only. */
export interface ExecutableRequest extends RequestInfo, RequestScope {
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Rows that count towards the batch: at least 1. */
  readonly rows: number;
  /** Aborted when the request is cancelled. */
  readonly signal: AbortSignal;
}

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

/**
 * Keeps state for each sequence of a callback, from its START to its END. The state is made at the first access, and
 * dropped with the sequence. It works in a worker too, where each instance keeps the states of its own sequences.
 *
 * @param create makes the state of a new sequence
 * @returns the state of a sequence; a fresh one for a null request, which has no sequence
 *
 * @example
 * ```ts
 * const totals = sequenceState(() => ({ sum: 0 }));
 * triton.bind({
 *   modelName: "accumulate",
 *   inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
 *   outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
 *   inferFunc: (requests) =>
 *     requests.map(({ inputs, sequence }) => {
 *       const total = totals(sequence);
 *       total.sum += inputs.x.data[0];
 *       return { y: [[total.sum]] };
 *     }),
 *   config: { sequence: {} },
 * });
 * ```
 */
export function sequenceState<T>(
  create: (sequence: SequenceInfo | undefined) => T,
): (sequence: SequenceInfo | undefined) => T {
  const states = new WeakMap<SequenceInfo, { readonly state: T }>();
  return (sequence) => {
    if (sequence === undefined) return create(undefined);
    let entry = states.get(sequence);
    if (entry === undefined) {
      entry = { state: create(sequence) };
      states.set(sequence, entry);
    }
    return entry.state;
  };
}
