import { FileMemory } from "@tritonjs/protocol";
import { invalidModel } from "./forest.js";

/** Reads numbers and arrays from a file, one after another. Nothing is read or allocated beyond the end of the file. */
export class ByteReader {
  readonly #view: DataView;
  /** What the values of the file take. */
  readonly memory: FileMemory;
  /** Number of bytes read. */
  at = 0;

  /**
   * @param bytes the file
   * @param format name of the format, for errors
   * @param littleEndian byte order of numbers
   */
  constructor(
    readonly bytes: Uint8Array,
    readonly format: string,
    private readonly littleEndian: boolean,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.memory = new FileMemory(format);
  }

  get left(): number {
    return this.bytes.byteLength - this.at;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  int8(): number {
    return this.#view.getInt8(this.#take(1));
  }

  int16(): number {
    return this.#view.getInt16(this.#take(2), this.littleEndian);
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4), this.littleEndian);
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), this.littleEndian);
  }

  float32(): number {
    return this.#view.getFloat32(this.#take(4), this.littleEndian);
  }

  float64(): number {
    return this.#view.getFloat64(this.#take(8), this.littleEndian);
  }

  /** A 64-bit integer; inexact above 2^53. */
  int64(): number {
    return Number(this.#view.getBigInt64(this.#take(8), this.littleEndian));
  }

  uint64(): number {
    return Number(this.#view.getBigUint64(this.#take(8), this.littleEndian));
  }

  skip(count: number): void {
    this.#take(count);
  }

  text(length: number): string {
    const start = this.#take(length);
    return new TextDecoder().decode(this.bytes.subarray(start, start + length));
  }

  /**
   * The next `count` elements of `size` bytes, as bytes that are aligned for a typed array.
   *
   * @throws TritonError INVALID_ARG if the file has fewer
   */
  elements(count: number, size: number): ArrayBuffer {
    const start = this.#take(count * size);
    const copy = new Uint8Array(count * size);
    copy.set(this.bytes.subarray(start, start + count * size));
    return copy.buffer;
  }

  #take(count: number): number {
    if (!(count >= 0) || count > this.left) {
      throw invalidModel(
        `${this.format}: the file is cut off: expected ${count} bytes at offset ${this.at}, got ${this.left}`,
      );
    }
    const start = this.at;
    this.at += count;
    return start;
  }
}

/** A value of a UBJSON file. Arrays of one type of number are typed arrays. Objects have no prototype. */
type UbjsonValue =
  | null
  | boolean
  | number
  | string
  | readonly UbjsonValue[]
  | NumberArray
  | { readonly [key: string]: UbjsonValue };

type NumberArray = Uint8Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;

/** Models nest ten levels; the limit keeps hostile files from exhausting the stack. */
const MAX_LEVELS = 64;

const UBJSON = "XGBoost UBJSON";

/**
 * Decodes UBJSON, the format of `Booster.save_model("model.ubj")`: big-endian, with typed arrays.
 *
 * @throws TritonError INVALID_ARG for anything else
 */
export function decodeUbjson(bytes: Uint8Array): UbjsonValue {
  const reader = new ByteReader(bytes, UBJSON, false);
  return readValue(reader, marker(reader), 0);
}

function marker(reader: ByteReader): string {
  for (;;) {
    const read = String.fromCharCode(reader.uint8());
    if (read !== "N") return read;
  }
}

function readValue(reader: ByteReader, type: string, level: number): UbjsonValue {
  if (level > MAX_LEVELS) throw fault(reader, `expected at most ${MAX_LEVELS} levels, got more`);
  switch (type) {
    case "Z":
      return null;
    case "T":
      return true;
    case "F":
      return false;
    case "S":
    case "H":
      reader.memory.countParts();
      return reader.text(lengthOf(reader));
    case "C":
      return reader.text(1);
    case "[":
      reader.memory.countParts();
      return arrayOf(reader, level);
    case "{":
      reader.memory.countParts();
      return objectOf(reader, level);
    default:
      return numberOf(reader, type);
  }
}

/** Readers of numbers by the marker of their type. */
const NUMBERS: Readonly<Record<string, (reader: ByteReader) => number>> = {
  U: (reader) => reader.uint8(),
  i: (reader) => reader.int8(),
  I: (reader) => reader.int16(),
  l: (reader) => reader.int32(),
  L: (reader) => reader.int64(),
  d: (reader) => reader.float32(),
  D: (reader) => reader.float64(),
};

function numberOf(reader: ByteReader, type: string): number {
  const read = NUMBERS[type];
  if (read === undefined) throw fault(reader, `expected a type, got ${JSON.stringify(type)}`);
  return read(reader);
}

function lengthOf(reader: ByteReader, type = marker(reader)): number {
  if (!"UiIlL".includes(type))
    throw fault(reader, `expected an integer as length, got ${JSON.stringify(type)}`);
  const length = numberOf(reader, type);
  if (!Number.isSafeInteger(length) || length < 0)
    throw fault(reader, `expected a length from 0, got ${length}`);
  return length;
}

function arrayOf(reader: ByteReader, level: number): UbjsonValue {
  let next = marker(reader);
  let type: string | undefined;
  if (next === "$") {
    type = marker(reader);
    next = marker(reader);
    if (next !== "#")
      throw fault(reader, `expected the length of a typed array, got ${JSON.stringify(next)}`);
  }
  if (next === "#") {
    const length = lengthOf(reader);
    if (type !== undefined) return typedArray(reader, type, length, level);
    return elementsOf(reader, length, () => readValue(reader, marker(reader), level + 1));
  }
  const values: UbjsonValue[] = [];
  for (; next !== "]"; next = marker(reader)) {
    reader.memory.countNumbers(1);
    values.push(readValue(reader, next, level + 1));
  }
  return values;
}

/** Arrays of numbers by the marker of their type, and the bytes of an element. */
const ARRAYS: Readonly<Record<string, [size: number, of: (buffer: ArrayBuffer) => NumberArray]>> = {
  U: [1, (buffer) => new Uint8Array(buffer)],
  i: [1, (buffer) => new Int8Array(buffer)],
  I: [2, (buffer) => new Int16Array(buffer)],
  l: [4, (buffer) => new Int32Array(buffer)],
  d: [4, (buffer) => new Float32Array(buffer)],
  D: [8, (buffer) => new Float64Array(buffer)],
  L: [8, (buffer) => Float64Array.from(new BigInt64Array(buffer), Number)],
};

function typedArray(reader: ByteReader, type: string, length: number, level: number): UbjsonValue {
  const found = ARRAYS[type];
  if (found !== undefined) {
    const [size, arrayOf] = found;
    return arrayOf(swapped(reader.elements(length, size), size));
  }
  if (!"SHC[{".includes(type))
    throw fault(reader, `expected an array of numbers, got elements of type ${JSON.stringify(type)}`);
  return elementsOf(reader, length, () => readValue(reader, type, level + 1));
}

/** Each element takes at least one byte. */
function elementsOf(reader: ByteReader, length: number, read: () => UbjsonValue): UbjsonValue {
  if (length > reader.left) throw fault(reader, `expected ${length} elements, got ${reader.left} bytes`);
  reader.memory.countNumbers(length);
  return Array.from({ length }, read);
}

/** Turns big-endian elements into the order of this machine, in place. */
function swapped(buffer: ArrayBuffer, size: number): ArrayBuffer {
  const bytes = new Uint8Array(buffer);
  for (let at = 0; at < bytes.length; at += size) {
    for (let i = 0; i < size >> 1; i++) {
      const byte = bytes[at + i]!;
      bytes[at + i] = bytes[at + size - 1 - i]!;
      bytes[at + size - 1 - i] = byte;
    }
  }
  return buffer;
}

function objectOf(reader: ByteReader, level: number): UbjsonValue {
  const object: Record<string, UbjsonValue> = Object.create(null);
  let next = marker(reader);
  let count = Number.POSITIVE_INFINITY;
  if (next === "$") throw fault(reader, "expected an object with values of any type, got a typed object");
  if (next === "#") {
    count = lengthOf(reader);
    if (count > reader.left) throw fault(reader, `expected ${count} members, got ${reader.left} bytes`);
    next = count > 0 ? marker(reader) : "}";
  }
  for (let read = 0; read < count && next !== "}"; read++) {
    reader.memory.countParts();
    const key = reader.text(lengthOf(reader, next));
    object[key] = readValue(reader, marker(reader), level + 1);
    next = read + 1 < count ? marker(reader) : "}";
  }
  return object;
}

function fault(reader: ByteReader, text: string): Error {
  return invalidModel(`${UBJSON}: at offset ${reader.at}: ${text}`);
}
