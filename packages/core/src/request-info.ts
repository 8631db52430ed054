import {
  errorFor,
  type InferOptions,
  type Parameters,
  type ParameterValue,
  type RequestSequence,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";

/** Properties of one request without its tensors. */
export interface RequestInfo extends SequencePosition {
  /** Id that the client set, or an empty string. */
  readonly id: string;
  readonly parameters: Parameters;
  /** 0 for the default level, 1 for the highest. */
  readonly priority: number;
  /** Longest wait in the queue that the client allows; 0 for any. */
  readonly queueTimeoutMicroseconds: number;
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
  /** Outputs that only other models read, so that they may be tensors with a `source`. */
  readonly innerOutputs?: ReadonlySet<string> | undefined;
  /** Rows that count towards the batch: at least 1. */
  readonly rows: number;
  /** Aborted when the request is cancelled. */
  readonly signal: AbortSignal;
  /** Models whose callbacks wait for this request, outermost first. Undefined in a worker. */
  readonly callers?: readonly string[];
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
export interface SequencePosition {
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
}

/** The position of a request without a sequence. */
export const NO_SEQUENCE: SequencePosition = {
  correlationId: undefined,
  sequenceStart: false,
  sequenceEnd: false,
};

/** Triton's flags of a request in a sequence. */
const START = 1;
const END = 2;

export function sequenceFlags({ sequenceStart, sequenceEnd }: SequencePosition): number {
  return (sequenceStart ? START : 0) | (sequenceEnd ? END : 0);
}

/** Reads the flags of a request as the sequence among the options of a call. */
export function sequenceOfFlags(id: bigint | string, flags: number): RequestSequence {
  return { id, start: (flags & START) !== 0, end: (flags & END) !== 0 };
}

/** The scalars that decide how a request is scheduled. */
export interface RequestScalars {
  priority: number;
  queueTimeoutMicroseconds: number;
  correlationId: bigint | string | undefined;
  sequenceStart: boolean;
  sequenceEnd: boolean;
}

/** Copies the place of a request in its sequence. */
export function copySequence(
  from: SequencePosition,
  to: Omit<RequestScalars, "priority" | "queueTimeoutMicroseconds">,
): void {
  to.correlationId = from.correlationId;
  to.sequenceStart = from.sequenceStart;
  to.sequenceEnd = from.sequenceEnd;
}

export function copyScalars(from: RequestScalars, to: RequestScalars): void {
  to.priority = from.priority;
  to.queueTimeoutMicroseconds = from.queueTimeoutMicroseconds;
  copySequence(from, to);
}

/** The scalars among the options of a call. */
type ScalarOptions = Pick<InferOptions, "priority" | "queueTimeoutMicroseconds" | "sequence">;

/** Writes the scalars of a request as options of a call. Defaults are left out. */
export function scalarOptions(request: Partial<Readonly<RequestScalars>>): ScalarOptions {
  const { priority = 0, queueTimeoutMicroseconds = 0, correlationId, sequenceStart, sequenceEnd } = request;
  const hasSequence = correlationId !== undefined && correlationId !== 0n && correlationId !== "";
  return {
    ...(priority === 0 ? {} : { priority }),
    ...(queueTimeoutMicroseconds === 0 ? {} : { queueTimeoutMicroseconds }),
    ...(hasSequence && {
      sequence: {
        id: correlationId,
        ...(sequenceStart ? { start: true } : {}),
        ...(sequenceEnd ? { end: true } : {}),
      },
    }),
  };
}

/** Reads the scalars among the options of a call. Most calls have none. */
export function readScalarOptions(options: ScalarOptions, into: RequestScalars): void {
  const { priority, queueTimeoutMicroseconds, sequence } = options;
  if (priority !== undefined) into.priority = priority;
  if (queueTimeoutMicroseconds !== undefined) into.queueTimeoutMicroseconds = queueTimeoutMicroseconds;
  if (sequence === undefined) return;
  const { id, start = false, end = false } = sequence;
  if (id !== undefined) into.correlationId = typeof id === "number" ? toId(id) : id;
  into.sequenceStart = start;
  into.sequenceEnd = end;
}

/** Turns a number into a correlation id: an unsigned 64-bit integer. */
function toId(id: number): bigint {
  if (Number.isSafeInteger(id) && id >= 0) return BigInt(id);
  throw errorFor("INVALID_SEQUENCE", `sequence.id: expected an integer of at least 0 or a string, got ${id}`);
}

/** The scalars among the options of a call that limit its wait in the queue. */
export type QueueOptions = Pick<ScalarOptions, "priority" | "queueTimeoutMicroseconds">;

export function queueOptions({ priority, queueTimeoutMicroseconds }: QueueOptions): QueueOptions {
  return { priority, queueTimeoutMicroseconds };
}

/** Writes these options as a trace file has them. Defaults are left out. */
export function tracedQueueOptions({ priority, queueTimeoutMicroseconds: timeout }: QueueOptions): {
  readonly priority?: number;
  readonly queue_timeout_us?: number;
} {
  return { ...(priority && { priority }), ...(timeout && { queue_timeout_us: timeout }) };
}

/** Reads what {@link tracedQueueOptions} wrote; values of other types are left out. */
export function readTracedQueueOptions(entry: Readonly<Record<string, unknown>>): QueueOptions {
  const { priority, queue_timeout_us: timeout } = entry;
  return queueOptions({
    priority: typeof priority === "number" ? priority : undefined,
    queueTimeoutMicroseconds: typeof timeout === "number" ? timeout : undefined,
  });
}

/** Writes the scalars of a request as parameters of the protocol. Defaults are left out; undefined if all are defaults. */
export function scalarParameters(
  request: Readonly<RequestScalars>,
): Record<string, ParameterValue> | undefined {
  let all: Record<string, ParameterValue> | undefined;
  const add = (name: string, value: ParameterValue): void => {
    all ??= {};
    all[name] = value;
  };
  if (request.correlationId !== undefined) add("sequence_id", request.correlationId);
  if (request.sequenceStart) add("sequence_start", true);
  if (request.sequenceEnd) add("sequence_end", true);
  if (request.priority !== 0) add("priority", request.priority);
  if (request.queueTimeoutMicroseconds !== 0) add("timeout", request.queueTimeoutMicroseconds);
  return all;
}

/** Reads values of reserved parameters from a protocol; each method throws the protocol's error for a wrong value. */
export interface ScalarReader<V> {
  readId(value: V, name: string): bigint | string;
  readFlag(value: V, name: string): boolean;
  readPriority(value: V, name: string): number;
  readTimeout(value: V, name: string): number;
}

const MAX_CORRELATION_ID_BYTES = 128;

/**
 * Reads a parameter of the protocol that is a scalar of the request. Returns false for any other parameter.
 *
 * @throws TritonError UNSUPPORTED for a text of more than 128 bytes as the id of a sequence, and the reader's errors
 */
export function readScalarParameter<V>(
  name: string,
  value: V,
  into: Partial<RequestScalars>,
  reader: ScalarReader<V>,
): boolean {
  switch (name) {
    case "sequence_id":
      into.correlationId = shortId(reader.readId(value, name));
      return true;
    case "sequence_start":
      into.sequenceStart = reader.readFlag(value, name);
      return true;
    case "sequence_end":
      into.sequenceEnd = reader.readFlag(value, name);
      return true;
    case "priority":
      into.priority = reader.readPriority(value, name);
      return true;
    case "timeout":
      into.queueTimeoutMicroseconds = reader.readTimeout(value, name);
      return true;
    default:
      return false;
  }
}

function shortId(id: bigint | string): bigint | string {
  if (typeof id === "bigint" || Buffer.byteLength(id) <= MAX_CORRELATION_ID_BYTES) return id;
  throw new TritonError(
    "UNSUPPORTED",
    `string correlation ID cannot be longer than ${MAX_CORRELATION_ID_BYTES} characters`,
  );
}

/** Reads scalars that {@link scalarParameters} wrote. */
export const writtenScalars: ScalarReader<ParameterValue> = {
  readId: (value) => value as bigint | string,
  readFlag: Boolean,
  readPriority: Number,
  readTimeout: Number,
};

/**
 * The sequence of the steps of an ensemble after a response. It is that of the step itself, unless the response has one
 * of the parameters `sequence_id`, `sequence_start` and `sequence_end`. If it has any of them, missing flags are off.
 *
 * @throws TritonError INVALID_ARG for a parameter of another type.
 */
export function sequenceAfter(step: SequencePosition, parameters: Parameters): SequencePosition {
  const { sequence_id: id, sequence_start: start, sequence_end: end } = parameters;
  if (id === undefined && start === undefined && end === undefined) return step;
  return {
    correlationId: id === undefined ? step.correlationId : answeredId(id),
    sequenceStart: answeredFlag("sequence_start", start),
    sequenceEnd: answeredFlag("sequence_end", end),
  };
}

function answeredId(value: ParameterValue): bigint | string {
  if (typeof value === "string" || typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isInteger(value)) return BigInt.asUintN(64, BigInt(value));
  throw errorFor(
    "INVALID_SEQUENCE",
    "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
  );
}

function answeredFlag(name: string, value: ParameterValue | undefined): boolean {
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  throw errorFor("INVALID_SEQUENCE", `expect parameter '${name}' to be TRITONSERVER_PARAMETER_BOOL`);
}

/** The parameters from which {@link sequenceAfter} reads a sequence; an ensemble's answer always has them. */
export function sequenceParameters({
  correlationId: id = 0n,
  sequenceStart,
  sequenceEnd,
}: SequencePosition): Parameters {
  // Parameters are bigints only outside the safe range.
  const isSafe = typeof id === "bigint" && id <= BigInt(Number.MAX_SAFE_INTEGER);
  return { sequence_id: isSafe ? Number(id) : id, sequence_start: sequenceStart, sequence_end: sequenceEnd };
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

/** Inputs with the largest number of tokens of a text: those of vLLM and TensorRT-LLM in Triton. */
const LIMIT_INPUTS = ["max_tokens", "request_output_len"];
const MAX_TOKENS = /"max_(?:completion_|new_)?tokens"\s*:\s*(\d+)/;

/**
 * Largest number of tokens of the text that a request asks for: the parameter or input `max_tokens`, or the member of
 * the JSON in the input `sampling_parameters`. Undefined if the request does not say.
 */
export function lengthLimitOf({
  inputs,
  parameters,
}: {
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly parameters: Parameters;
}): number | undefined {
  const given =
    parameters.max_tokens ?? LIMIT_INPUTS.map((name) => inputs.get(name)?.elements[0]).find(isGiven);
  const json = given === undefined ? inputs.get("sampling_parameters")?.elements[0] : undefined;
  const found =
    json instanceof Uint8Array ? MAX_TOKENS.exec(Buffer.from(json).toString("latin1"))?.[1] : given;
  const limit = Number(found);
  return limit >= 1 && limit < Number.POSITIVE_INFINITY ? limit : undefined;
}

function isGiven<T>(value: T | undefined): value is T {
  return value !== undefined;
}

/** Headers of clients that a scheduler looks at. */
export interface ReadHeaders {
  /** Header with the name of the caller; `caller` for `tritonjs-caller`. */
  readonly caller: string;
  /** True if it looks at how long the client waits for the answer. */
  readonly limit: boolean;
}
