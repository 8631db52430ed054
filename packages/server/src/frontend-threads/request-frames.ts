import {
  InferenceRequest,
  type InferenceResponse,
  readScalarParameter,
  scalarParameters,
  writtenScalars,
} from "@tritonjs/core/internal/server";
import {
  DATA_TYPES,
  type DataType,
  type ErrorCode,
  type ErrorReason,
  errorWithoutStack,
  type ModelConfig,
  NO_PARAMETERS,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { freeMemory, LARGE_REQUEST_BYTES, ownedByAnswer } from "../service/request-memory.js";
import { type IncomingFrame, KIND, MOVED, type OutgoingFrame } from "./frames.js";

/** Flags of a request; fields without a flag have their defaults. */
const FLAG = {
  latest: MOVED << 1,
  id: MOVED << 2,
  parameters: MOVED << 3,
  outputs: MOVED << 4,
  scalars: MOVED << 5,
  trace: MOVED << 6,
  limit: MOVED << 7,
  caller: MOVED << 8,
  key: MOVED << 9,
} as const;

export interface RequestTarget {
  readonly key: number;
  /** True if the client named no version. */
  readonly latest: boolean;
  readonly config: Pick<ModelConfig, "input" | "output">;
}

/** Writes a request. Memory of its large tensors is handed over: the sender must not use it any more. */
export function writeRequest(
  frame: OutgoingFrame,
  number: number,
  { key, latest, config }: RequestTarget,
  request: InferenceRequest,
  trace: string | undefined,
): void {
  const { id, requestedOutputs, parameters } = request;
  const scalars = scalarParameters(request);
  let flags = 0;
  frame.open(KIND.request, number).word(key);
  if (latest) flags |= FLAG.latest;
  if (id !== "") {
    flags |= FLAG.id;
    frame.text(id);
  }
  if (parameters !== NO_PARAMETERS) {
    flags |= FLAG.parameters;
    frame.parameters(parameters);
  }
  if (requestedOutputs.length > 0) {
    flags |= FLAG.outputs;
    frame.word(requestedOutputs.length);
    for (const name of requestedOutputs) writeName(frame, name, config.output);
  }
  if (scalars !== undefined) {
    flags |= FLAG.scalars;
    frame.parameters(scalars);
  }
  if (request.clientLimitMs > 0) {
    flags |= FLAG.limit;
    frame.text(String(request.clientLimitMs));
  }
  if (request.caller !== "") {
    flags |= FLAG.caller;
    frame.text(request.caller);
  }
  if (request.routingKey !== "") {
    flags |= FLAG.key;
    frame.text(request.routingKey);
  }
  if (trace !== undefined) {
    flags |= FLAG.trace;
    frame.text(trace);
  }
  writeTensorMap(frame, request.inputs, config.input, true);
  frame.close(flags);
}

/** Reads the number of the version for which a request was decoded, which is its first word. */
export function readRequestKey(frame: IncomingFrame): Omit<RequestTarget, "config"> {
  return { key: frame.word(), latest: (frame.flags & FLAG.latest) !== 0 };
}

export class ReceivedRequest extends InferenceRequest {
  readonly arrival: string | undefined;

  constructor(
    frame: IncomingFrame,
    model: { readonly name: string; readonly config: RequestTarget["config"] },
  ) {
    super(model.name);
    const { flags, moved } = frame;
    if (flags & FLAG.id) this.id = frame.text();
    if (flags & FLAG.parameters) this.parameters = frame.parameters();
    if (flags & FLAG.outputs) this.requestedOutputs = readNames(frame, model.config.output);
    if (flags & FLAG.scalars) {
      for (const [name, value] of Object.entries(frame.parameters()))
        readScalarParameter(name, value, this, writtenScalars);
    }
    if (flags & FLAG.limit) this.clientLimitMs = Number(frame.text());
    if (flags & FLAG.caller) this.caller = frame.text();
    if (flags & FLAG.key) this.routingKey = frame.text();
    this.arrival = flags & FLAG.trace ? frame.text() : undefined;
    this.inputs = readTensorMap(frame, model.config.input);
    if (moved.length === 0) return;
    this.onInputsUsed = (output) => {
      if (output === undefined) moved.forEach(freeMemory);
    };
  }
}

function readNames(frame: IncomingFrame, known: ModelConfig["output"]): string[] {
  const names = new Array<string>(frame.word());
  for (let i = 0; i < names.length; i++) names[i] = readName(frame, known);
  return names;
}

export const RESPONSE = {
  final: MOVED << 1,
  error: MOVED << 2,
  outputs: MOVED << 3,
  refused: MOVED << 4,
  parameters: MOVED << 5,
  id: MOVED << 6,
  /** The name or version of the model differs from what the request was decoded for. */
  model: MOVED << 7,
} as const;

export interface AnsweredRequest {
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly config: Pick<ModelConfig, "output">;
}

/** Writes an outcome of a request. Its tensors are copied: they may share memory with others. */
export function writeResponse(
  frame: OutgoingFrame,
  number: number,
  request: AnsweredRequest,
  outcome: InferenceResponse | TritonError | undefined,
  final: boolean,
  refused = false,
): void {
  let flags = final ? RESPONSE.final : 0;
  frame.open(KIND.response, number);
  if (TritonError.is(outcome)) {
    flags |= refused ? RESPONSE.error | RESPONSE.refused : RESPONSE.error;
    writeFramedError(frame, outcome);
  } else if (outcome !== undefined) {
    flags |= RESPONSE.outputs;
    if (outcome.id !== request.id) {
      flags |= RESPONSE.id;
      frame.text(outcome.id);
    }
    if (outcome.modelName !== request.modelName || outcome.modelVersion !== request.modelVersion) {
      flags |= RESPONSE.model;
      frame.text(outcome.modelName);
      frame.text(outcome.modelVersion);
    }
    if (outcome.parameters !== NO_PARAMETERS) {
      flags |= RESPONSE.parameters;
      frame.parameters(outcome.parameters);
    }
    writeTensorMap(frame, outcome.outputs, request.config.output, false);
  }
  frame.close(flags);
}

/** Reads the outcome of a request; undefined for an end without a response. */
export function readOutcome(
  frame: IncomingFrame,
  request: AnsweredRequest,
): InferenceResponse | TritonError | undefined {
  const { flags } = frame;
  if (flags & RESPONSE.error) return readFramedError(frame);
  if (!(flags & RESPONSE.outputs)) return undefined;
  // The engine handed over copies, which nothing else sees.
  for (const memory of frame.moved) ownedByAnswer(memory);
  const hasModel = (flags & RESPONSE.model) !== 0;
  return {
    id: flags & RESPONSE.id ? frame.text() : request.id,
    modelName: hasModel ? frame.text() : request.modelName,
    modelVersion: hasModel ? frame.text() : request.modelVersion,
    parameters: flags & RESPONSE.parameters ? frame.parameters() : NO_PARAMETERS,
    outputs: readTensorMap(frame, request.config.output),
  };
}

export function writeFramedError(
  frame: OutgoingFrame,
  { code, reason, message, retryAfterMs }: TritonError,
): void {
  frame.text(code);
  frame.text(reason);
  frame.text(message);
  frame.double(retryAfterMs ?? Number.NaN);
}

export function readFramedError(frame: IncomingFrame): TritonError {
  const code = frame.text() as ErrorCode;
  const reason = frame.text() as ErrorReason;
  const message = frame.text();
  const retryAfterMs = frame.double();
  return errorWithoutStack(code, message, {
    reason: reason as never,
    ...(Number.isNaN(retryAfterMs) ? {} : { retryAfterMs }),
  });
}

type Tensors = ReadonlyMap<string, Tensor>;

/* Bits in the word that describes a tensor, above the code of its data type. */

/** The dimensions are words; otherwise texts, because a client may send numbers of 64 bits. */
const SMALL_DIMS = 1 << 8;
/** The bytes are in memory that was handed over; otherwise inside the frame. */
const ELSEWHERE = 1 << 9;

/** Code of a data type that does not exist, which a client may name all the same. Its name follows. */
const UNKNOWN_TYPE = 0xff;

const codes = new Map<DataType, number>(DATA_TYPES.map((datatype, code) => [datatype, code]));

const MAX_WORD = 0x7fff_ffff;

/**
 * Writes tensors by name.
 *
 * @param known names that both sides know; they are sent as numbers
 * @param movable whether the memory of large tensors may be handed over. If not, it is copied, and the copy is handed
 * over
 */
export function writeTensorMap(
  frame: OutgoingFrame,
  tensors: Tensors,
  known: readonly { readonly name: string }[],
  movable: boolean,
): void {
  frame.word(tensors.size);
  for (const [name, tensor] of tensors) {
    writeName(frame, name, known);
    writeTensor(frame, tensor, movable);
  }
}

export function readTensorMap(
  frame: IncomingFrame,
  known: readonly { readonly name: string }[],
): Map<string, Tensor> {
  const count = frame.word();
  const tensors = new Map<string, Tensor>();
  for (let i = 0; i < count; i++) {
    const name = readName(frame, known);
    tensors.set(name, readTensor(frame));
  }
  return tensors;
}

function writeName(frame: OutgoingFrame, name: string, known: readonly { readonly name: string }[]): void {
  for (let i = 0; i < known.length; i++) {
    if (known[i]!.name === name) {
      frame.word(i + 1);
      return;
    }
  }
  frame.word(0);
  frame.text(name);
}

function readName(frame: IncomingFrame, known: readonly { readonly name: string }[]): string {
  const number = frame.word();
  return number === 0 ? frame.text() : known[number - 1]!.name;
}

function writeTensor(frame: OutgoingFrame, { datatype, shape, bytes }: Tensor, movable: boolean): void {
  const place = frame.place(bytes);
  const isSmall = shape.every((dim) => typeof dim === "number" && dim >= 0 && dim <= MAX_WORD);
  const code = codes.get(datatype);
  frame.word((code ?? UNKNOWN_TYPE) | (isSmall ? SMALL_DIMS : 0) | (place === undefined ? ELSEWHERE : 0));
  if (code === undefined) frame.text(datatype);
  frame.word(shape.length);
  for (const dim of shape) {
    if (isSmall) frame.word(dim);
    else frame.text(typeof dim === "bigint" ? `${dim as bigint}n` : String(dim));
  }
  frame.double(bytes.length);
  if (place !== undefined) {
    frame.word(place);
    return;
  }
  const { buffer } = bytes;
  const mayMove = movable && isOwn(bytes);
  frame.word(frame.hand(mayMove ? (buffer as ArrayBuffer) : copyOf(bytes)));
  frame.double(mayMove ? bytes.byteOffset : 0);
}

/** True for memory that belongs to one request alone. Node.js shares at most 64 KiB among several chunks of sockets. */
function isOwn({ buffer }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.byteLength > LARGE_REQUEST_BYTES;
}

function copyOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new Uint8Array(Buffer.allocUnsafeSlow(bytes.length).buffer);
  copy.set(bytes);
  return copy.buffer;
}

function readTensor(frame: IncomingFrame): Tensor {
  const word = frame.word();
  const datatype = (word & 0xff) === UNKNOWN_TYPE ? (frame.text() as DataType) : DATA_TYPES[word & 0xff]!;
  const rank = frame.word();
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) {
    shape[axis] = word & SMALL_DIMS ? frame.word() : readLargeDim(frame.text());
  }
  const length = frame.double();
  const at = frame.word();
  const bytes =
    word & ELSEWHERE ? new Uint8Array(frame.moved[at]!, frame.double(), length) : frame.placed(at, length);
  return Tensor.fromBytes(datatype, shape, bytes);
}

/** A dimension beyond the safe integers is a bigint, which the validation refuses. */
function readLargeDim(text: string): number {
  return text.endsWith("n") ? (BigInt(text.slice(0, -1)) as unknown as number) : Number(text);
}

/** Bits of a number that name a slot. The bits above them tell the uses of a slot apart. */
const SLOT_BITS = 20;
const SLOT_MASK = (1 << SLOT_BITS) - 1;

/**
 * Requests in flight by number. The slots are used again. A `Map` would keep answered requests alive: each table that
 * V8 outgrows holds its entries and the next table, and an old table is seldom collected.
 */
export class RequestSlots<R> {
  readonly #requests: (R | undefined)[] = [];
  readonly #numbers: number[] = [];
  readonly #free: number[] = [];
  #givesNumbers = false;

  add(request: R): number {
    this.#givesNumbers = true;
    const slot = this.#free.pop() ?? this.#requests.length;
    const number = ((this.#numbers[slot] ?? slot) + (1 << SLOT_BITS)) | 0;
    this.set(number, request);
    return number;
  }

  set(number: number, request: R): void {
    const slot = number & SLOT_MASK;
    while (this.#requests.length <= slot) {
      this.#requests.push(undefined);
      this.#numbers.push(this.#numbers.length);
    }
    this.#requests[slot] = request;
    this.#numbers[slot] = number;
  }

  get(number: number): R | undefined {
    const slot = number & SLOT_MASK;
    return this.#numbers[slot] === number ? this.#requests[slot] : undefined;
  }

  /** Removes a request. Without effect if another one has its slot. */
  delete(number: number): void {
    const slot = number & SLOT_MASK;
    if (this.#numbers[slot] !== number || this.#requests[slot] === undefined) return;
    this.#requests[slot] = undefined;
    if (this.#givesNumbers) this.#free.push(slot);
  }

  values(): R[] {
    return this.#requests.filter((request) => request !== undefined);
  }
}
