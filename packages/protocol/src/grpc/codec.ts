import { inference } from "#messages";
import protobuf from "#protobuf";
import { type DataType, type Elements, typedArrayFor } from "../data-types.js";

/** The decoding part of a generated message class. */
export interface MessageDecoder<T> {
  // The generated code accepts any reader of protobufjs. Ours differs from its types only in the 64-bit methods.
  decode(reader: never): T;
}

/** The encoding part of a generated message class. */
export interface MessageEncoder<T> {
  encode(message: T, writer?: never): unknown;
}

/**
 * Decodes a message. Its `bytes` fields are views of `bytes`.
 *
 * @param maxFields Most fields of the message with all nested messages.
 * @throws Error for bytes that are not such a message, FieldLimitError for too many fields.
 */
export function decodeMessage<T>(type: MessageDecoder<T>, bytes: Uint8Array, maxFields?: number): T {
  const buffer = asBuffer(bytes);
  const reader = maxFields === undefined ? new MessageReader(buffer) : new BoundedReader(buffer, maxFields);
  return type.decode(reader as never);
}

/** Decodes as {@link decodeMessage} does, but thousands of strings in `bytesContents` become {@link WireStrings}. */
export function decodePacked<T>(type: MessageDecoder<T>, bytes: Uint8Array): T {
  return type.decode(new PackingReader(asBuffer(bytes)) as never);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Encodes a message. */
export function encodeMessage<T>(type: MessageEncoder<T>, message: T): Buffer {
  const writer = new MessageWriter();
  type.encode(message, writer as never);
  return writer.finish(true);
}

/** Value of a request or response parameter. */
type ParameterScalar = string | number | bigint | boolean;

/** Encodes a parameter: whole numbers as int64, other numbers as double. */
export function encodeParameter(value: ParameterScalar): inference.InferParameter.$Properties {
  switch (typeof value) {
    case "boolean":
      return { boolParam: value };
    case "string":
      return { stringParam: value };
    case "bigint":
      return { int64Param: value };
    default:
      return Number.isSafeInteger(value) ? { int64Param: value } : { doubleParam: value };
  }
}

interface Halves {
  low: number;
  high: number;
}
type Wide = number | bigint | Halves;

/** The part of protobufjs' writer that the writer below uses, without its 64-bit types. */
interface BaseWriter {
  uint64(value: number | Halves): this;
  uint64s(values: (number | Halves)[]): this;
  /** Returns the written bytes; with `shared` as a view of the writer's buffer. */
  finish(shared: boolean): Buffer;
}
const BaseWriter = protobuf.BufferWriter as unknown as new () => BaseWriter;

/** Writes protobuf; 64-bit integers may be bigints. */
class MessageWriter extends BaseWriter {
  override uint64(value: Wide): this {
    return super.uint64(halves(value));
  }

  override uint64s(values: Wide[]): this {
    return super.uint64s(values.map(halves));
  }

  int64(value: Wide): this {
    return this.uint64(value);
  }

  int64s(values: Wide[]): this {
    return this.uint64s(values);
  }
}

function halves(value: Wide): number | Halves {
  if (typeof value !== "bigint") return value;
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) };
}

/** The part of protobufjs' reader that the reader below uses, without its 64-bit types. */
interface BaseReader {
  buf: Uint8Array;
  pos: number;
  len: number;
  raw(start: number, end: number): Uint8Array;
  tag(): number;
  size(): number;
  bytes(): Uint8Array;
}
const BaseReader = protobuf.BufferReader as unknown as new (buffer: Buffer) => BaseReader;

/** Values of a field of tensor contents: a typed array as a rule, a list if they are not in one packed field. */
type ContentsValues = PackedValues | unknown[];

const TWO_TO_32 = 0x1_0000_0000;

/**
 * Reads protobuf, with 64-bit integers as numbers if a number is exact, and as bigints otherwise. `bytes` fields are
 * views of type `Uint8Array`: `slice` of a `Buffer` does not copy, which callers would not expect.
 */
class MessageReader extends BaseReader {
  override raw(start: number, end: number): Uint8Array {
    return new Uint8Array(this.buf.buffer, this.buf.byteOffset + start, end - start);
  }

  int64(): number | bigint {
    const [low, high] = this.#varint64();
    const value = (high | 0) * TWO_TO_32 + low;
    return Number.isSafeInteger(value) ? value : BigInt.asIntN(64, wide(low, high));
  }

  uint64(): number | bigint {
    const [low, high] = this.#varint64();
    const value = high * TWO_TO_32 + low;
    return Number.isSafeInteger(value) ? value : wide(low, high);
  }

  /** Reads a packed field of tensor contents. The values of a field that comes in several parts are listed. */
  packed(type: PackedType, earlier: ContentsValues): ContentsValues {
    const length = this.size();
    const end = this.pos + length;
    if (end > this.len) throw new RangeError(`index out of range: ${this.pos} + ${length} > ${this.len}`);
    const values = unpackValues(type, this.buf.subarray(this.pos, end));
    this.pos = end;
    if (earlier.length === 0) return values;
    const list = listOf(earlier);
    for (const value of values) list.push(value);
    return list;
  }

  /** Adds a value that is not packed to a field of tensor contents. */
  added(earlier: ContentsValues, value: unknown): ContentsValues {
    const list = listOf(earlier);
    list.push(value);
    return list;
  }

  /** Adds a string to `bytesContents`. */
  strings(earlier: Uint8Array[] | WireStrings, _tag: number): Uint8Array[] | WireStrings {
    (earlier as Uint8Array[]).push(this.bytes());
    return earlier;
  }

  /** Reads the low and the high half of a varint, unsigned. */
  #varint64(): [low: number, high: number] {
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return [low, 0];
    }
    let byte = this.#byte();
    low = (low | ((byte & 0x7f) << 28)) >>> 0;
    let high = (byte & 0x7f) >> 4;
    for (let shift = 3; byte >= 0x80; shift += 7) {
      if (shift > 31) throw new Error("invalid varint encoding");
      byte = this.#byte();
      high |= (byte & 0x7f) << shift;
    }
    return [low, high >>> 0];
  }

  #byte(): number {
    if (this.pos >= this.len) throw new RangeError(`index out of range: ${this.pos} + 1 > ${this.len}`);
    return this.buf[this.pos++]!;
  }
}

/** The error of a message with more fields than its reader permits. */
export class FieldLimitError extends Error {
  override readonly name = "FieldLimitError";

  constructor(maxFields: number) {
    super(`request message: expected at most ${maxFields} fields, got more`);
  }
}

/** Reads a message that should be small. One with too many fields is rejected before they take much time. */
class BoundedReader extends MessageReader {
  #left: number;
  readonly #maxFields: number;

  constructor(buffer: Buffer, maxFields: number) {
    super(buffer);
    this.#maxFields = maxFields;
    this.#left = maxFields;
  }

  /** @throws FieldLimitError for the first field beyond the limit. */
  override tag(): number {
    if (--this.#left < 0) throw new FieldLimitError(this.#maxFields);
    return super.tag();
  }
}

/** Strings of a tensor from which on they are not listed. */
const MOST_LISTED = 4096;

/** Reads a message for the server: many strings become {@link WireStrings}. */
class PackingReader extends MessageReader {
  override strings(earlier: Uint8Array[] | WireStrings, tag: number): Uint8Array[] | WireStrings {
    if (Array.isArray(earlier) && earlier.length < MOST_LISTED) return super.strings(earlier, tag);
    const packed = Array.isArray(earlier) ? new WireStrings() : earlier;
    if (Array.isArray(earlier)) for (const string of earlier) packed.add(string, 0, string.length);
    // One loop for all strings that follow each other, whose tag is one byte.
    for (;;) {
      const length = this.size();
      const end = this.pos + length;
      if (end > this.len) throw new RangeError(`index out of range: ${this.pos} + ${length} > ${this.len}`);
      packed.add(this.buf, this.pos, end);
      this.pos = end;
      if (end >= this.len || this.buf[end] !== tag) return packed;
      this.pos++;
    }
  }
}

function listOf(values: ContentsValues): unknown[] {
  return Array.isArray(values) ? values : Array.from<unknown>(values);
}

function wide(low: number, high: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

/** Data types of packed protobuf fields, with protobuf's names. */
type PackedType = "bool" | "int32" | "uint32" | "int64" | "uint64" | "float" | "double";

/** Values of a packed field; booleans as 0 and 1. */
type PackedValues =
  | Uint8Array
  | Int32Array
  | Uint32Array
  | BigInt64Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | Float32Array
  | Float64Array;

/** Decodes a packed field to a typed array. A list would take 8 to 24 bytes for a value of one byte. */
function unpackValues(type: PackedType, bytes: Uint8Array): PackedValues {
  switch (type) {
    case "float":
      return new Float32Array(wholeNumbers(bytes, 4));
    case "double":
      return new Float64Array(wholeNumbers(bytes, 8));
    case "bool": {
      const values = new Uint8Array(countVarints(bytes));
      readVarints(bytes, (index, low, high) => {
        values[index] = (low | high) === 0 ? 0 : 1;
      });
      return values;
    }
    case "int32":
    case "uint32": {
      const values = new Uint32Array(countVarints(bytes));
      readVarints(bytes, (index, low) => {
        values[index] = low;
      });
      return type === "int32" ? new Int32Array(values.buffer) : values;
    }
    case "int64":
    case "uint64": {
      const halves = new Uint32Array(2 * countVarints(bytes));
      readVarints(bytes, (index, low, high) => {
        halves[2 * index] = low;
        halves[2 * index + 1] = high;
      });
      return type === "int64" ? new BigInt64Array(halves.buffer) : new BigUint64Array(halves.buffer);
    }
  }
}

/** Copies numbers of a fixed size into memory of their own, which is aligned for them. */
function wholeNumbers(bytes: Uint8Array, size: number): ArrayBuffer {
  if (bytes.length % size !== 0) {
    throw new RangeError(`packed field: expected a multiple of ${size} bytes, got ${bytes.length}`);
  }
  return Uint8Array.from(bytes).buffer;
}

/** Counts varints: each ends with the only byte that is less than 128. */
function countVarints(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte < 0x80) count++;
  return count;
}

/** Passes on the low and the high 32 bits of each varint. */
function readVarints(bytes: Uint8Array, store: (index: number, low: number, high: number) => void): void {
  let at = 0;
  for (let index = 0; at < bytes.length; index++) {
    let byte = bytes[at++]!;
    let low = byte & 0x7f;
    let high = 0;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 63 || at === bytes.length) throw new RangeError("packed field: invalid varint");
      byte = bytes[at++]!;
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift > 28) high |= bits << (shift - 32);
      else if (shift === 28) high = bits >> 4;
    }
    store(index, low, high);
  }
}

const LENGTH_BYTES = 4;
const FIRST_CAPACITY = 64 * 1024;
/** Bytes from which a native copy is faster than a loop. */
const WORTH_NATIVE_COPY = 64;

/**
 * Many strings of a message in the wire form of a BYTES tensor: each behind its length in four bytes. An array of them
 * would take an object of a hundred bytes for each.
 */
export class WireStrings implements Iterable<Uint8Array> {
  #buffer = new Uint8Array(0);
  #bytes = 0;
  #count = 0;

  /** Number of strings. */
  get length(): number {
    return this.#count;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#bytes);
  }

  /** All strings in one piece, for callers that add up lengths. */
  *[Symbol.iterator](): Generator<Uint8Array> {
    yield this.bytes;
  }

  /** Adds the string in `source` from `from` to `end`. */
  add(source: Uint8Array, from: number, end: number): void {
    const length = end - from;
    const needed = this.#bytes + LENGTH_BYTES + length;
    if (needed > this.#buffer.length) this.#grow(needed);
    const buffer = this.#buffer;
    let at = this.#bytes;
    buffer[at++] = length;
    buffer[at++] = length >>> 8;
    buffer[at++] = length >>> 16;
    buffer[at++] = length >>> 24;
    if (length >= WORTH_NATIVE_COPY) buffer.set(source.subarray(from, end), at);
    else for (let place = from; place < end; place++) buffer[at++] = source[place]!;
    this.#bytes = needed;
    this.#count++;
  }

  #grow(needed: number): void {
    const grown = new Uint8Array(
      Buffer.allocUnsafeSlow(Math.max(needed, FIRST_CAPACITY, 2 * this.#buffer.length)).buffer,
    );
    grown.set(this.bytes);
    this.#buffer = grown;
  }
}

const VARINT = 0;
const FIXED_64 = 1;
const DELIMITED = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED_32 = 5;

/** Receives a field with a length: its number, and the begin and end of its bytes. */
type FieldVisitor = (field: number, from: number, to: number) => void;

/**
 * Visits the fields with a length of the message in `bytes` from `from` to `to`, without decoding them. Stops at bytes
 * that are not a message: the decoder reports them later.
 *
 * @param visitOther is called with the number of each other field, and of each field in a group
 */
export function eachField(
  bytes: Uint8Array,
  from: number,
  to: number,
  visit: FieldVisitor,
  visitOther?: (field: number) => void,
): void {
  let at = from;
  let groups = 0;
  /** Reads a varint of at most 32 bits; the low bits of a longer one. */
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; at < to; shift += 7) {
      const byte = bytes[at++]!;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    return 0;
  };
  while (at < to) {
    const tag = varint();
    if (visitOther !== undefined && ((tag & 7) !== DELIMITED || groups > 0)) visitOther(tag >>> 3);
    switch (tag & 7) {
      case VARINT:
        varint();
        break;
      case FIXED_64:
        at += 8;
        break;
      case DELIMITED: {
        const length = varint();
        if (length > to - at) return;
        if (groups === 0) visit(tag >>> 3, at, at + length);
        at += length;
        break;
      }
      case GROUP_START:
        groups++;
        break;
      case GROUP_END:
        groups--;
        break;
      case FIXED_32:
        at += 4;
        break;
      default:
        return;
    }
  }
}

/** The path of a method of the inference service. */
export function inferencePath(name: string): string {
  return `/inference.GRPCInferenceService/${name}`;
}

type Messages = typeof inference;

/** Name of a method of the inference service with one request and one response. */
export type UnaryRpcName = {
  [K in keyof Messages]: K extends `${infer N}Request`
    ? `${N}Response` extends keyof Messages
      ? N
      : never
    : never;
}[keyof Messages];

/** The request of a method, for encoders. */
export type RpcRequest<N extends UnaryRpcName> = Parameters<Messages[`${N}Request`]["encode"]>[0];

/** The response of a method, as decoded. */
export type RpcResponse<N extends UnaryRpcName> = ReturnType<Messages[`${N}Response`]["decode"]>;

/** The path of a method of the inference service, and the classes of its messages. */
export function unaryRpc<N extends UnaryRpcName>(name: N) {
  return {
    path: inferencePath(name),
    request: inference[`${name}Request`],
    response: inference[`${name}Response`],
  };
}

/** Trailer with the number of milliseconds after which a server permits a retry. Clients that retry obey it. */
export const RETRY_PUSHBACK = "grpc-retry-pushback-ms";

type Contents = inference.InferTensorContents.$Properties;

/** The error of typed contents that do not fit the tensor. Its message names the tensor. */
export class ContentsError extends Error {
  override readonly name = "ContentsError";
}

/**
 * Fields of typed contents, in the order in which Triton checks them, with the data types of each. The error of a wrong
 * field names the first one.
 */
const FIELDS: readonly (readonly [Exclude<keyof Contents, "$unknowns">, ...DataType[]])[] = [
  ["boolContents", "BOOL"],
  ["intContents", "INT32", "INT8", "INT16"],
  ["int64Contents", "INT64"],
  ["uintContents", "UINT32", "UINT8", "UINT16"],
  ["uint64Contents", "UINT64"],
  ["fp32Contents", "FP32"],
  ["fp64Contents", "FP64"],
  ["bytesContents", "BYTES"],
];

/**
 * The values of a field as elements. Those that are too large are truncated. The reader decodes a packed field as a
 * typed array, which is not copied if it has the type of the elements. Values in several fields are lists.
 */
function elementsFrom(values: ContentsValues, datatype: DataType): Elements {
  if (datatype === "BYTES") return values as Uint8Array[];
  const array = typedArrayFor(datatype) as unknown as new (values: ContentsValues) => Elements;
  if (values instanceof array) return values as Elements;
  return new array(datatype.endsWith("INT64") ? Array.from(values as (number | bigint)[], BigInt) : values);
}

/**
 * Decodes the elements in typed contents; undefined when no field has a value.
 *
 * @param where `input tensor 'X' for model 'M'`, for messages
 * @throws ContentsError when the values are in a field of another data type, or in two fields.
 */
export function typedElements(contents: Contents, datatype: string, where: string): Elements | undefined {
  let elements: Elements | undefined;
  for (const [field, named, ...others] of FIELDS) {
    const values = contents[field];
    if (values == null || values.length === 0) continue;
    if (elements !== undefined) {
      throw new ContentsError(
        `unexpected explicit tensor data for ${where}, binary data was already supplied.`,
      );
    }
    const known = [named, ...others].find((one) => one === datatype);
    if (known === undefined) {
      throw new ContentsError(
        `unexpected explicit tensor data for ${where} of type '${named}', expected datatype '${datatype}'`,
      );
    }
    elements = elementsFrom(values, known);
  }
  return elements;
}
