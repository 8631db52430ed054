import {
  DEFAULT_MAX_INPUT_SIZE,
  MAX_JSON_MEMBERS,
  MAX_JSON_OBJECTS,
  MAX_JSON_VALUES,
  maxNumbers,
} from "../limits.js";
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  type Cursor,
  consume,
  consumeAll,
  cursorAt,
  LOWER_F,
  LOWER_N,
  LOWER_T,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  readString,
  skipWhitespace,
  syntaxError,
} from "./cursor.js";
import { type JsonArray, JsonObject, type JsonValue } from "./json-value.js";
import { readNumber } from "./read-number.js";
import { PackedReader, Scratch, tooMany } from "./read-packed.js";
import { decodeText } from "./text.js";

type Open = { array: JsonValue[] } | { array?: undefined; object: JsonObject; name: string };

const NO_VALUES: JsonValue[] = [];

const NEVER = Number.POSITIVE_INFINITY;

/** Bytes of one step of a reader. They take about 20 µs as numbers, and a millisecond at worst. */
const STEP_BYTES = 16 * 1024;

/** Numbers of which memory is kept while further long documents wait: 32 MiB. Growing to it takes as long as reading. */
const MAX_KEPT_NUMBERS = 1 << 22;

/** Memory of documents that are read at once, and of those that are read in steps, one after the other. */
const scratch = new Scratch();
const scratchOfSteps = new Scratch(MAX_KEPT_NUMBERS);

/**
 * Reads a JSON document as Triton's parser does. It accepts a byte order mark, a NUL at the end, `NaN`, `Inf` and
 * `Infinity`. If members have the same name, it keeps the first. Depth costs memory, not stack. Packed numbers are
 * valid until the next document is read.
 *
 * @param mostNumbers limit on the numbers in arrays of numbers
 * @throws TritonError INTERNAL that names the fault and its byte, INVALID_ARG for too many values.
 */
export function parseJson(bytes: Uint8Array, mostNumbers = maxNumbers(DEFAULT_MAX_INPUT_SIZE)): JsonValue {
  scratch.reuse(mostNumbers);
  const cursor = startOf(bytes);
  const { value } = new ValueReader(cursor, scratch, false).read(NEVER)!;
  checkEnd(cursor);
  return value;
}

/** Reads a long document as {@link parseJson} does, with pauses. Only one such document may be read at a time. */
export function* jsonSteps(
  bytes: Uint8Array,
  mostNumbers: number,
  stepBytes = STEP_BYTES,
): Generator<void, JsonValue> {
  scratchOfSteps.reuse(mostNumbers);
  const cursor = startOf(bytes);
  const reader = new ValueReader(cursor, scratchOfSteps, true);
  let read = reader.read(cursor.at + stepBytes);
  for (; read === undefined; read = reader.read(cursor.at + stepBytes)) yield;
  checkEnd(cursor);
  return read.value;
}

/** Frees the memory of long documents when no other waits to be read. */
export function endJsonSteps(): void {
  scratchOfSteps.release();
}

/**
 * The elements of an array one by one. A packed array is parsed again, for callers that report the fault of an element.
 */
export function elementsOf(array: JsonArray): JsonValue[] {
  if (Array.isArray(array)) return array;
  const reader = new ValueReader(cursorAt(array.source, array.start), undefined, false);
  return reader.read(NEVER)!.value as JsonValue[];
}

/** A cursor at the first value of a document. */
function startOf(bytes: Uint8Array): Cursor {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const cursor = cursorAt(bytes, hasMark ? 3 : 0);
  skipWhitespace(cursor);
  if (atEnd(cursor)) throw syntaxError("The document is empty.", cursor.at);
  return cursor;
}

function checkEnd(cursor: Cursor): void {
  skipWhitespace(cursor);
  if (atEnd(cursor)) return;
  throw syntaxError("The document root must not be followed by other values.", cursor.at);
}

function atEnd(cursor: Cursor): boolean {
  const code = cursor.bytes[cursor.at];
  return code === undefined || code === 0;
}

/**
 * Reads one value. An array is tried as a packed one first, unless it is inside of an array: that one has been tried.
 */
class ValueReader {
  /** Undefined to pack nothing. */
  readonly #scratch: Scratch | undefined;
  readonly #open: Open[] = [];
  #packing: PackedReader | undefined;
  #values = 0;
  #objects = 0;

  constructor(
    private readonly cursor: Cursor,
    memory: Scratch | undefined,
    private readonly packsStrings: boolean,
  ) {
    this.#scratch = memory;
  }

  /** Reads on; undefined for a pause at offset `stopAt` or later. */
  read(stopAt: number): { value: JsonValue } | undefined {
    const cursor = this.cursor;
    const open = this.#open;
    for (;;) {
      let value: JsonValue | undefined;
      if (this.#packing === undefined) {
        if (cursor.at >= stopAt) return undefined;
        if (++this.#values > MAX_JSON_VALUES) throw tooMany(MAX_JSON_VALUES, "values");
        const code = cursor.bytes[cursor.at];
        if (code === OPEN_BRACKET) {
          if (this.#mayPack()) this.#packing = new PackedReader(cursor, this.#scratch!, this.packsStrings);
          else value = openArray(cursor, open);
        } else if (code === OPEN_BRACE) {
          if (++this.#objects > MAX_JSON_OBJECTS) throw tooMany(MAX_JSON_OBJECTS, "objects");
          value = openObject(cursor, open);
        } else value = readScalar(cursor, code);
      }
      if (this.#packing !== undefined) {
        const start = this.#packing.start;
        const packed = this.#packing.read(stopAt);
        if (packed === undefined) return undefined;
        this.#packing = undefined;
        if (packed === null) {
          cursor.at = start;
          value = openArray(cursor, open);
        } else value = packed;
      }
      if (value === undefined) continue;
      for (;;) {
        const top = open.at(-1);
        if (top === undefined) return { value };
        if (!attach(cursor, top, value)) break;
        value = top.array ?? top.object;
        open.pop();
      }
    }
  }

  #mayPack(): boolean {
    if (this.#scratch === undefined || this.cursor.bytes[this.cursor.at + 1] === CLOSE_BRACKET) return false;
    return this.#open.at(-1)?.array === undefined;
  }
}

/** Opens the array that comes next; returns an empty one, which is closed already. */
function openArray(cursor: Cursor, open: Open[]): JsonValue[] | undefined {
  cursor.at++;
  skipWhitespace(cursor);
  if (consume(cursor, CLOSE_BRACKET)) return [];
  open.push({ array: NO_VALUES });
  return undefined;
}

/** Opens the object that comes next; returns an empty one, which is closed already. */
function openObject(cursor: Cursor, open: Open[]): JsonObject | undefined {
  cursor.at++;
  skipWhitespace(cursor);
  const object = new JsonObject();
  if (consume(cursor, CLOSE_BRACE)) return object;
  open.push({ object, name: readName(cursor) });
  return undefined;
}

/** Adds a value to its container; true when the container ends after it. */
function attach(cursor: Cursor, into: Open, value: JsonValue): boolean {
  skipWhitespace(cursor);
  if (into.array !== undefined) {
    // The first value makes the array: one that is pushed into an empty array reserves room for 16 more.
    if (into.array === NO_VALUES) into.array = [value];
    else into.array.push(value);
    if (consume(cursor, CLOSE_BRACKET)) return true;
    if (!consume(cursor, COMMA)) {
      throw syntaxError("Missing a comma or ']' after an array element.", cursor.at);
    }
    skipWhitespace(cursor);
    return false;
  }
  if (into.object.size >= MAX_JSON_MEMBERS) throw tooMany(MAX_JSON_MEMBERS, "members of an object");
  into.object.add(into.name, value);
  if (consume(cursor, CLOSE_BRACE)) return true;
  if (!consume(cursor, COMMA)) {
    throw syntaxError("Missing a comma or '}' after an object member.", cursor.at);
  }
  skipWhitespace(cursor);
  into.name = readName(cursor);
  return false;
}

function readName(cursor: Cursor): string {
  if (cursor.bytes[cursor.at] !== QUOTE) throw syntaxError("Missing a name for object member.", cursor.at);
  const name = decodeText(readString(cursor));
  skipWhitespace(cursor);
  if (!consume(cursor, COLON)) throw syntaxError("Missing a colon after a name of object member.", cursor.at);
  skipWhitespace(cursor);
  return name;
}

function readScalar(cursor: Cursor, code: number | undefined): JsonValue {
  if (code === QUOTE) return readString(cursor);
  if (code === LOWER_T) return readLiteral(cursor, "true", true);
  if (code === LOWER_F) return readLiteral(cursor, "false", false);
  if (code === LOWER_N) return readLiteral(cursor, "null", null);
  return readNumber(cursor);
}

function readLiteral<T extends boolean | null>(cursor: Cursor, text: string, value: T): T {
  if (!consumeAll(cursor, text)) throw syntaxError("Invalid value.", cursor.at);
  return value;
}
