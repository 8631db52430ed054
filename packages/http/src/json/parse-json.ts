import { TritonError } from "@tritonjs/protocol";
import { DEFAULT_MAX_INPUT_SIZE, MAX_JSON_VALUES, maxNumbers } from "../limits.js";
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LOWER_F,
  LOWER_N,
  LOWER_T,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from "./ascii.js";
import { type Cursor, consume, consumeAll, cursorAt, skipWhitespace, syntaxError } from "./cursor.js";
import { type JsonArray, JsonObject, type JsonValue } from "./json-value.js";
import { readNumber } from "./read-number.js";
import { readPacked, reuseScratch } from "./read-packed.js";
import { readString } from "./read-string.js";
import { decodeText } from "./text.js";

/** An array or object that is not closed yet. */
type Open = { array: JsonValue[] } | { array?: undefined; object: JsonObject; name: string };

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Reads a JSON document as Triton's parser does. It accepts a byte order mark, a NUL at the end, `NaN`, `Inf` and
 * `Infinity`. If members have the same name, it keeps the first. Depth costs memory, not stack. Packed numbers are
 * valid until the next document is read.
 *
 * @param mostNumbers limit on the numbers in arrays of numbers
 * @throws TritonError INTERNAL that names the fault and its byte, INVALID_ARG for too many values.
 */
export function parseJson(bytes: Uint8Array, mostNumbers = maxNumbers(DEFAULT_MAX_INPUT_SIZE)): JsonValue {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const cursor = cursorAt(bytes, hasMark ? 3 : 0);
  reuseScratch(mostNumbers);
  skipWhitespace(cursor);
  if (atEnd(cursor)) throw syntaxError("The document is empty.", cursor.at);
  const value = readValue(cursor, 0);
  skipWhitespace(cursor);
  if (!atEnd(cursor)) {
    throw syntaxError("The document root must not be followed by other values.", cursor.at);
  }
  return value;
}

/**
 * The elements of an array one by one. A packed array is parsed again, for callers that report the fault of an element.
 */
export function elementsOf(array: JsonArray): JsonValue[] {
  if (Array.isArray(array)) return array;
  return readValue(cursorAt(array.source, array.start), NEVER) as JsonValue[];
}

function atEnd(cursor: Cursor): boolean {
  const code = cursor.bytes[cursor.at];
  return code === undefined || code === 0;
}

/**
 * Reads one value. An array that opens at `packFrom` or later is tried as packed numbers first. The next try begins
 * where the last one failed, so no byte is tried twice.
 */
function readValue(cursor: Cursor, packFrom: number): JsonValue {
  const open: Open[] = [];
  for (let count = 1; ; count++) {
    if (count > MAX_JSON_VALUES) throw tooManyValues();
    let value: JsonValue | undefined;
    const start = cursor.at;
    const code = cursor.bytes[start];
    if (code === OPEN_BRACKET) {
      if (start >= packFrom) {
        value = readPacked(cursor);
        if (value === undefined) {
          packFrom = cursor.at;
          cursor.at = start;
        }
      }
      if (value === undefined) {
        cursor.at++;
        skipWhitespace(cursor);
        if (!consume(cursor, CLOSE_BRACKET)) {
          open.push({ array: [] });
          continue;
        }
        value = [];
      }
    } else if (code === OPEN_BRACE) {
      cursor.at++;
      skipWhitespace(cursor);
      const object = new JsonObject();
      if (!consume(cursor, CLOSE_BRACE)) {
        open.push({ object, name: readName(cursor) });
        continue;
      }
      value = object;
    } else value = readScalar(cursor, code);

    for (;;) {
      const top = open.at(-1);
      if (top === undefined) return value;
      if (!attach(cursor, top, value)) break;
      value = top.array ?? top.object;
      open.pop();
    }
  }
}

function tooManyValues(): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `request JSON: expected at most ${MAX_JSON_VALUES} values, got more`,
    {
      reason: "REQUEST_TOO_LARGE",
    },
  );
}

/** Adds a value to its container; true when the container ends after it. */
function attach(cursor: Cursor, into: Open, value: JsonValue): boolean {
  skipWhitespace(cursor);
  if (into.array !== undefined) {
    into.array.push(value);
    if (consume(cursor, CLOSE_BRACKET)) return true;
    if (!consume(cursor, COMMA)) {
      throw syntaxError("Missing a comma or ']' after an array element.", cursor.at);
    }
    skipWhitespace(cursor);
    return false;
  }
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
