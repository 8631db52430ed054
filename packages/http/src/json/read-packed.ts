import { errorFor, type TritonError } from "@tritonjs/protocol";
import { MAX_DATA_DEPTH, MAX_JSON_STRINGS } from "../limits.js";
import {
  BACKSLASH,
  CARRIAGE_RETURN,
  CLOSE_BRACKET,
  COMMA,
  type Cursor,
  closingQuote,
  consumeAll,
  LINE_FEED,
  LOWER_F,
  LOWER_T,
  MINUS,
  NINE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
  TAB,
  UPPER_I,
  UPPER_N,
  unescapeInto,
  ZERO,
} from "./cursor.js";
import { PackedNumbers, PackedStrings } from "./json-value.js";
import { endsRuns, type Run, readNumber, readRun } from "./read-number.js";

/*
 * The fast path for tensors. The numbers of an array go into a scratch array that documents share one after the other.
 * `readRun` reads plain numbers, and `readNumber` reads each of the others. Strings become the wire form of a tensor.
 */

const FIRST_SCRATCH = 1024;
const MAX_KEPT_SCRATCH = 1 << 20;

/** Numbers of one call of `readRun`, after which a pause is possible. */
const RUN_LENGTH = 4096;

const FIRST_EXACT = 8;
const FIRST_TEXT_BYTES = 64;
/** Bytes from which a native copy is faster than a loop. */
const WORTH_NATIVE_COPY = 64;
const LENGTH_BYTES = 4;

/** Memory for the packed arrays of one document at a time. */
export class Scratch {
  numbers: Float64Array = new Float64Array(FIRST_SCRATCH);
  /** Offset of the next array of this document. */
  used = 0;
  strings = 0;
  #limit = FIRST_SCRATCH;
  readonly #mostKept: number;

  /** @param mostKept numbers of which memory is kept for the next document */
  constructor(mostKept = MAX_KEPT_SCRATCH) {
    this.#mostKept = mostKept;
  }

  /**
   * Releases the values of the last document: its arrays must not be used any more.
   *
   * @param limit limit on the numbers of the next document
   */
  reuse(limit: number): void {
    this.used = 0;
    this.strings = 0;
    this.#limit = limit;
    if (this.numbers.length > this.#mostKept) this.release();
  }

  /** Frees the memory of a long document when no other waits for it. */
  release(): void {
    if (this.numbers.length > MAX_KEPT_SCRATCH) this.numbers = new Float64Array(FIRST_SCRATCH);
  }

  /** @throws TritonError INVALID_ARG when the document has as many numbers as it may have. */
  grow(): void {
    const { length } = this.numbers;
    if (length >= this.#limit) throw tooMany(this.#limit, "numbers");
    const grown = new Float64Array(Math.min(length * 2, this.#limit));
    grown.set(this.numbers);
    this.numbers = grown;
  }

  addString(): void {
    if (++this.strings > MAX_JSON_STRINGS) throw tooMany(MAX_JSON_STRINGS, "strings in arrays");
  }
}

export function tooMany(most: number, parts: string): TritonError {
  return errorFor("REQUEST_TOO_LARGE", `request JSON: expected at most ${most} ${parts}, got more`);
}

type Kind = "numbers" | "booleans" | "strings";

/**
 * Reads one array if it holds only numbers, only booleans or, in a long document, only strings. An array that cannot
 * be packed is read again by the general parser, which reports its faults.
 */
export class PackedReader implements Run {
  at: number;
  count: number;
  valueExpected = true;
  fractionAt = -1;
  minuses = false;
  /** Offset of the bracket of the array. */
  readonly start: number;
  readonly #from: number;
  #kind: Kind | undefined;
  #depth = 0;
  #nested = false;
  /** True right after an opening bracket, where the array may end. */
  #mayEnd = false;
  /** Elements of the outermost array. */
  #length = 0;
  /** Integers beyond 2^53, at their indices in the array. */
  #exact: BigInt64Array | undefined;
  #texts: Uint8Array | undefined;
  #textsLength = 0;

  /** @param cursor is at the bracket of the array */
  constructor(
    private readonly cursor: Cursor,
    private readonly scratch: Scratch,
    private readonly packsStrings: boolean,
  ) {
    this.start = cursor.at;
    this.at = cursor.at;
    this.#from = scratch.used;
    this.count = scratch.used;
  }

  /**
   * Reads on, and leaves the cursor where it ended.
   *
   * @param stopAt offset from which on to pause
   * @returns the array; null if it cannot be packed; undefined for a pause
   */
  read(stopAt: number): PackedNumbers | PackedStrings | null | undefined {
    const { bytes } = this.cursor;
    const scratch = this.scratch;
    // Local variables: rows of a few numbers reach them often.
    let depth = this.#depth;
    let mayEnd = this.#mayEnd;
    let length = this.#length;
    for (;;) {
      const { at } = this;
      if (at >= stopAt) {
        this.#depth = depth;
        this.#mayEnd = mayEnd;
        this.#length = length;
        return this.#leave(undefined);
      }
      const token = bytes[at];
      if (token === COMMA) {
        if (this.valueExpected) return this.#leave(null);
        this.valueExpected = true;
        mayEnd = false;
        this.at = at + 1;
      } else if (token === CLOSE_BRACKET) {
        if (this.valueExpected && !mayEnd) return this.#leave(null);
        this.at = at + 1;
        this.valueExpected = false;
        if (--depth === 0) return this.#leave(this.#packed(length));
        if (depth === 1) length++;
      } else if (token === OPEN_BRACKET) {
        if (!this.valueExpected || ++depth >= MAX_DATA_DEPTH) return this.#leave(null);
        mayEnd = true;
        this.at = at + 1;
        if (depth === 2) this.#nested = true;
      } else if (token === SPACE || token === LINE_FEED || token === CARRIAGE_RETURN || token === TAB) {
        this.at = at + 1;
      } else {
        if (!this.valueExpected) return this.#leave(null);
        const before = this.count;
        if (this.#kind === "numbers") {
          if (before === scratch.numbers.length) scratch.grow();
          const { numbers } = scratch;
          readRun(bytes, this, numbers, Math.min(numbers.length, before + RUN_LENGTH));
          if (this.at === at && !(isNumberStart(token) && this.#readNumber())) return this.#leave(null);
        } else if (!this.#readOther(token)) return this.#leave(null);
        mayEnd = false;
        if (depth === 1) length += this.count - before;
      }
    }
  }

  #leave<T>(result: T): T {
    this.cursor.at = this.at;
    return result;
  }

  /** Reads a value that is not known to be a number; false if it does not belong into a packed array. */
  #readOther(token: number | undefined): boolean {
    if (isNumberStart(token)) {
      if (this.#kind !== undefined || !endsRuns(this.cursor.bytes)) return false;
      this.#kind = "numbers";
      return this.#readNumber();
    }
    if (token === QUOTE) {
      if (this.#kind === undefined && this.packsStrings) this.#kind = "strings";
      if (this.#kind !== "strings") return false;
      this.#readText();
      return true;
    }
    if (token !== LOWER_T && token !== LOWER_F) return false;
    this.#kind ??= "booleans";
    return this.#kind === "booleans" && this.#readBoolean(token === LOWER_T);
  }

  /** Reads one number of any form. */
  #readNumber(): boolean {
    const scratch = this.scratch;
    const { count } = this;
    if (count === scratch.numbers.length) scratch.grow();
    this.cursor.at = this.at;
    const read = readNumber(this.cursor);
    this.at = this.cursor.at;
    let value: number;
    if (typeof read === "bigint") {
      value = Number(read);
      this.#keepExact(count - this.#from, read);
    } else if (typeof read === "number") value = read;
    else {
      value = read.value;
      if (this.fractionAt < 0) this.fractionAt = count;
    }
    if (value < 0 || Object.is(value, -0)) this.minuses = true;
    this.#add(value);
    return true;
  }

  /** Its memory grows with the array: a document may have thousands of arrays of one such integer. */
  #keepExact(index: number, value: bigint): void {
    let exact = this.#exact;
    if (exact === undefined || index >= exact.length) {
      exact = new BigInt64Array(Math.max(FIRST_EXACT, 2 * index));
      if (this.#exact !== undefined) exact.set(this.#exact);
      this.#exact = exact;
    }
    exact[index] = value;
  }

  #readBoolean(value: boolean): boolean {
    this.cursor.at = this.at;
    if (!consumeAll(this.cursor, value ? "true" : "false")) return false;
    this.at = this.cursor.at;
    if (this.count === this.scratch.numbers.length) this.scratch.grow();
    this.#add(value ? 1 : 0);
    return true;
  }

  #add(value: number): void {
    this.scratch.numbers[this.count++] = value;
    this.valueExpected = false;
  }

  #readText(): void {
    this.scratch.addString();
    const { bytes } = this.cursor;
    const from = this.at + 1;
    let end = from;
    let code = bytes[end];
    while (code !== undefined && code >= SPACE && code !== QUOTE && code !== BACKSLASH) code = bytes[++end];
    if (code === QUOTE) {
      this.#addText(bytes, from, end);
      this.at = end + 1;
    } else {
      this.#addEscaped(from, end);
      this.at = this.cursor.at;
    }
    this.count++;
    this.valueExpected = false;
  }

  #addText(bytes: Uint8Array, from: number, end: number): void {
    const length = end - from;
    const texts = this.#roomFor(length);
    let at = this.#textsLength + LENGTH_BYTES;
    if (length >= WORTH_NATIVE_COPY) texts.set(bytes.subarray(from, end), at);
    else for (let place = from; place < end; place++) texts[at++] = bytes[place]!;
    this.#endText(texts, length);
  }

  /** @param escapeAt offset of the first byte that is not simply a part of the string */
  #addEscaped(from: number, escapeAt: number): void {
    const texts = this.#roomFor(closingQuote(this.cursor.bytes, escapeAt) - from);
    const start = this.#textsLength + LENGTH_BYTES;
    const out = { bytes: texts, length: start };
    unescapeInto(this.cursor, from, escapeAt, out);
    this.#endText(texts, out.length - start);
  }

  /** Memory with room for a string of some bytes after the others. */
  #roomFor(length: number): Uint8Array {
    const needed = this.#textsLength + LENGTH_BYTES + length;
    let texts = this.#texts;
    if (texts === undefined || needed > texts.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, FIRST_TEXT_BYTES, 2 * this.#textsLength));
      if (texts !== undefined) grown.set(texts.subarray(0, this.#textsLength));
      // Not a `Buffer`: its `slice` does not copy, which callers would not expect.
      texts = new Uint8Array(grown.buffer);
      this.#texts = texts;
    }
    return texts;
  }

  /** Writes the length in front of a string. */
  #endText(texts: Uint8Array, length: number): void {
    let at = this.#textsLength;
    texts[at++] = length;
    texts[at++] = length >>> 8;
    texts[at++] = length >>> 16;
    texts[at++] = length >>> 24;
    this.#textsLength = at + length;
  }

  #packed(length: number): PackedNumbers | PackedStrings {
    const { bytes } = this.cursor;
    if (this.#kind === "strings") {
      const texts = this.#texts!.subarray(0, this.#textsLength);
      return new PackedStrings(texts, length, bytes, this.start);
    }
    const scratch = this.scratch;
    scratch.used = this.count;
    return new PackedNumbers(
      scratch.numbers.subarray(this.#from, this.count),
      length,
      this.#kind === "booleans",
      this.fractionAt < 0 ? -1 : this.fractionAt - this.#from,
      this.minuses,
      this.#exact,
      this.#nested,
      bytes,
      this.start,
    );
  }
}

/** True for digits, a minus, and the first letters of `NaN` and `Infinity`. */
function isNumberStart(code: number | undefined): boolean {
  return (
    code !== undefined &&
    ((code >= ZERO && code <= NINE) || code === MINUS || code === UPPER_N || code === UPPER_I)
  );
}
