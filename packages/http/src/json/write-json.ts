import { doubleText, numberText } from "@tritonjs/protocol";
import { powersOfTen, productError } from "./read-number.js";
import { encodeText } from "./text.js";

/** JSON of answers other than inferences. Undefined members are left out. */
export type PlainJson =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly PlainJson[]
  | { readonly [name: string]: PlainJson | undefined };

export function toJsonBytes(value: PlainJson): Buffer {
  const writer = new ByteWriter();
  writeJson(writer, value);
  return writer.bytes();
}

export function writeJson(writer: ByteWriter, value: PlainJson): void {
  if (typeof value === "string") writer.string(value);
  else if (typeof value === "number" || typeof value === "bigint") writer.ascii(numberText(value));
  else if (typeof value === "boolean" || value === null) writer.ascii(String(value));
  else if (isList(value)) {
    writer.ascii("[");
    value.forEach((element, index) => {
      if (index > 0) writer.ascii(",");
      writeJson(writer, element);
    });
    writer.ascii("]");
  } else writeObject(writer, value);
}

function writeObject(writer: ByteWriter, value: { readonly [name: string]: PlainJson | undefined }): void {
  let separator = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    writer.ascii(separator).string(name).ascii(":");
    writeJson(writer, member);
    separator = ",";
  }
  writer.ascii(separator === "{" ? "{}" : "}");
}

function isList(value: object): value is readonly PlainJson[] {
  return Array.isArray(value);
}

const FIRST_CAPACITY = 1024;

/** Longest text that waits to be written, in characters. */
const MAX_PENDING = 4096;

/** Bytes of a computed double and its comma, as a rule. */
const USUAL_DOUBLE_BYTES = 20;
/** Doubles per check for room. */
const DOUBLES_AT_A_TIME = 1024;

/** Characters that are one byte in UTF-8 and need no escape in a JSON string. */
const plain = /^[ !#-[\]-~]*$/;

/** A growing buffer of bytes. ASCII text is collected, and written in one call before other bytes and at the end. */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;
  #pending = "";

  constructor(capacity = FIRST_CAPACITY) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  bytes(): Buffer {
    this.#flush();
    return this.#buffer.subarray(0, this.#length);
  }

  /** Writes text that the caller knows to be ASCII. */
  ascii(text: string): this {
    this.#pending += text;
    if (this.#pending.length > MAX_PENDING) this.#flush();
    return this;
  }

  /** Makes room for doubles that are written in several calls: memory that grows is copied. */
  reserveDoubles(count: number): void {
    this.#reserve(this.#pending.length + count * USUAL_DOUBLE_BYTES);
  }

  /** Writes doubles with a comma between them. */
  doubles(values: Float32Array | Float64Array): this {
    this.reserveDoubles(values.length);
    for (let from = 0; from < values.length; from += DOUBLES_AT_A_TIME) {
      const to = Math.min(from + DOUBLES_AT_A_TIME, values.length);
      this.#flush();
      this.#reserve((to - from) * (MAX_DOUBLE_BYTES + 1));
      const buffer = this.#buffer;
      let at = this.#length;
      for (let i = from; i < to; i++) {
        if (i > 0) buffer[at++] = 0x2c;
        const end = writeDouble(buffer, at, values[i]!);
        at = end < 0 ? writeShort(buffer, at, doubleText(values[i]!)) : end;
      }
      this.#length = at;
    }
    return this;
  }

  string(text: string): this {
    return plain.test(text) ? this.ascii(`"${text}"`) : this.stringBytes(encodeText(text));
  }

  /**
   * Writes bytes as a JSON string, with Triton's escapes: the quote, the backslash and bytes below 0x20. Other bytes
   * are written unchanged, even if they are not valid UTF-8.
   */
  stringBytes(bytes: Uint8Array, from = 0, end = bytes.length): this {
    this.#flush();
    this.#reserve((end - from) * 6 + 2);
    const buffer = this.#buffer;
    let at = this.#length;
    buffer[at++] = 0x22;
    for (let i = from; i < end; i++) {
      const byte = bytes[i]!;
      if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) buffer[at++] = byte;
      else at += buffer.write(escapeOf(byte), at, "latin1");
    }
    buffer[at++] = 0x22;
    this.#length = at;
    return this;
  }

  #flush(): void {
    const text = this.#pending;
    if (text === "") return;
    this.#pending = "";
    this.#reserve(text.length);
    this.#length += this.#buffer.write(text, this.#length, "latin1");
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}

/** Writes a few characters in a loop: a native call would take longer. */
function writeShort(buffer: Buffer, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i);
  return at + text.length;
}

const shortEscapes = new Map([
  [0x08, "\\b"],
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0c, "\\f"],
  [0x0d, "\\r"],
  [0x22, '\\"'],
  [0x5c, "\\\\"],
]);

function escapeOf(byte: number): string {
  return shortEscapes.get(byte) ?? `\\u${byte.toString(16).toUpperCase().padStart(4, "0")}`;
}

/*
 * Writes doubles as text without a string for each. `v * 10^k` has 17 digits before the dot. Two doubles hold it
 * exactly, because 10^k is a double up to 10^22. The decimals within half a unit of the last bit of `v` read back as
 * `v`. JavaScript, and so Triton, prints the shortest of them, and of several the nearest:
 *
 *   0.12340000271797180  * 10^17 = 12340000271797180.175...  half a unit: 0.69
 *                                  12340000271797180          17 digits
 *                                  1234000027179718           16 digits: 0.175 away, taken
 *
 * Other numbers (whole ones, few digits, ties, very large and very small ones) are left to the caller.
 */

const SMALLEST = 1e-6;
const LARGEST = 1e15;
/** Digits of the whole. It is split into two halves, each an exact 32-bit integer. */
const DIGITS = 17;
const HALF = 1e8;
/** Far above the error of a comparison. In nearly all cases, far below a difference that matters. */
const DOUBT = 1e-6;
const ZERO = 0x30;
const DOT = 0x2e;
const MINUS = 0x2d;

/** Most bytes that {@link writeDouble} writes. */
export const MAX_DOUBLE_BYTES = 26;

/** `0000` to `9999`, the first digit in the low byte. */
const quads = Uint32Array.from({ length: 10_000 }, (_, i) =>
  Buffer.from(String(i).padStart(4, "0")).readUInt32LE(),
);

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
/** Half a unit of the last bit of doubles by exponent, from 2^-20 to 2^50. */
const FIRST_EXPONENT = -20;
const halfUnits = Float64Array.from({ length: 71 }, (_, i) => 2 ** (i + FIRST_EXPONENT - 53));

/**
 * Writes a double at `at`, where there must be room. Returns the end of its text, or -1 for a number that is left to
 * the caller.
 */
export function writeDouble(bytes: Uint8Array, at: number, value: number): number {
  const size = value < 0 ? -value : value;
  if (!(size >= SMALLEST && size < LARGEST) || size === Math.floor(size)) return -1;
  double[0] = size;
  const high = words[1]!;
  // Below a power of two, doubles are closer to each other than above it.
  if (words[0] === 0 && (high & 0xf_ffff) === 0) return -1;
  const exponent = (high >>> 20) - 1023;
  let magnitude = Math.floor(exponent * 0.30103);
  let scale = powersOfTen[DIGITS - 1 - magnitude]!;
  let product = size * scale;
  if (product >= 1e17) {
    magnitude++;
    scale = powersOfTen[DIGITS - 1 - magnitude]!;
    product = size * scale;
  }
  if (!(product >= 1e16 && product < 1e17 - 64)) return -1;
  const reach = halfUnits[exponent - FIRST_EXPONENT]! * scale;
  let first = Math.floor(product / HALF);
  // The remainder after the first half: exact up to here.
  const rest = product - first * HALF + productError(size, scale, product);
  // `Math.round` takes twice as long, and differs for ties alone, which are left to the caller.
  let second = Math.floor(rest + 0.5);
  let digits = DIGITS;
  let step = 1;
  for (;;) {
    const wider = step * 10;
    const shorter = Math.floor(rest / wider + 0.5) * wider;
    const away = Math.abs(shorter - rest);
    if (away > reach + DOUBT) break;
    if (away > reach - DOUBT || wider === HALF) return -1;
    second = shorter;
    step = wider;
    digits--;
  }
  if (Math.abs(Math.abs(second - rest) - step / 2) < DOUBT) return -1;
  if (second >= HALF) {
    first++;
    second -= HALF;
  } else if (second < 0) {
    first--;
    second += HALF;
  }
  let to = at;
  if (value < 0) bytes[to++] = MINUS;
  if (magnitude < 0) {
    bytes[to++] = ZERO;
    bytes[to++] = DOT;
    for (let zeros = -1 - magnitude; zeros > 0; zeros--) bytes[to++] = ZERO;
    writeDigits(bytes, to, first, second);
    return to + digits;
  }
  // One byte further, until the digits before the dot are moved back.
  writeDigits(bytes, to + 1, first, second);
  for (let i = 0; i <= magnitude; i++) bytes[to + i] = bytes[to + i + 1]!;
  bytes[to + magnitude + 1] = DOT;
  return to + digits + 1;
}

function writeDigits(bytes: Uint8Array, at: number, first: number, second: number): void {
  const lead = (first / HALF) | 0;
  bytes[at] = ZERO + lead;
  const nine = (first - lead * HALF) | 0;
  const eight = second | 0;
  let quad = (nine / 10_000) | 0;
  writeQuad(bytes, at + 1, quad);
  writeQuad(bytes, at + 5, nine - quad * 10_000);
  quad = (eight / 10_000) | 0;
  writeQuad(bytes, at + 9, quad);
  writeQuad(bytes, at + 13, eight - quad * 10_000);
}

function writeQuad(bytes: Uint8Array, at: number, quad: number): void {
  const digits = quads[quad]!;
  bytes[at] = digits;
  bytes[at + 1] = digits >>> 8;
  bytes[at + 2] = digits >>> 16;
  bytes[at + 3] = digits >>> 24;
}
