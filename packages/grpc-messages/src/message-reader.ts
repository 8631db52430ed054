import protobuf from "#protobuf";
import { type PackedType, type PackedValues, unpackValues } from "./packed-values.js";
import { WireStrings } from "./wire-strings.js";

/** The part of protobufjs' reader that the reader below uses, without its 64-bit types. */
interface BaseReader {
  buf: Uint8Array;
  pos: number;
  len: number;
  raw(start: number, end: number): Uint8Array;
  tag(): number;
  /** Reads the length of a field. */
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
export class MessageReader extends BaseReader {
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

  /**
   * Reads a packed field of tensor contents. The values of a field that comes in several parts are listed.
   *
   * @param earlier values of the field that have been read
   */
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
export class BoundedReader extends MessageReader {
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
export class PackingReader extends MessageReader {
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
