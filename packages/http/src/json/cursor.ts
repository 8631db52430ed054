import { errorFor, type TritonError } from "@tritonjs/protocol";

/** Bytes with a meaning in JSON. */
export const TAB = 0x09;
export const LINE_FEED = 0x0a;
export const CARRIAGE_RETURN = 0x0d;
export const SPACE = 0x20;
export const QUOTE = 0x22;
export const PLUS = 0x2b;
export const COMMA = 0x2c;
export const MINUS = 0x2d;
export const DOT = 0x2e;
export const ZERO = 0x30;
export const NINE = 0x39;
export const COLON = 0x3a;
export const UPPER_E = 0x45;
export const UPPER_I = 0x49;
export const UPPER_N = 0x4e;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
const LOWER_A = 0x61;
export const LOWER_E = 0x65;
export const LOWER_F = 0x66;
export const LOWER_I = 0x69;
export const LOWER_N = 0x6e;
export const LOWER_T = 0x74;
const LOWER_U = 0x75;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** A position in a JSON text. Reading past the end yields `undefined`, which ends the document like NUL. */
export interface Cursor {
  readonly bytes: Uint8Array;
  /** The same memory, for native text functions. */
  readonly buffer: Buffer;
  at: number;
}

export function cursorAt(bytes: Uint8Array, at: number): Cursor {
  return { bytes, buffer: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), at };
}

export function skipWhitespace(cursor: Cursor): void {
  const { bytes } = cursor;
  let at = cursor.at;
  for (;;) {
    const code = bytes[at];
    if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) break;
    at++;
  }
  cursor.at = at;
}

export function consume(cursor: Cursor, code: number): boolean {
  if (cursor.bytes[cursor.at] !== code) return false;
  cursor.at++;
  return true;
}

/** Moves past the longest prefix of `text` that comes next; true when that is the whole `text`. */
export function consumeAll(cursor: Cursor, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!consume(cursor, text.charCodeAt(i))) return false;
  return true;
}

/** Faults of a JSON text, in the words of Triton's parser. */
type SyntaxFault =
  | "The document is empty."
  | "The document root must not be followed by other values."
  | "Invalid value."
  | "Missing a name for object member."
  | "Missing a colon after a name of object member."
  | "Missing a comma or '}' after an object member."
  | "Missing a comma or ']' after an array element."
  | "Incorrect hex digit after \\u escape in string."
  | "The surrogate pair in string is invalid."
  | "Invalid escape character in string."
  | "Missing a closing quotation mark in string."
  | "Number too big to be stored in double."
  | "Miss fraction part in number."
  | "Miss exponent in number.";

/** The error of a JSON text with a fault at byte `at`. */
export function syntaxError(fault: SyntaxFault, at: number): TritonError {
  return errorFor("MALFORMED_JSON", `failed to parse the request JSON buffer: ${fault} at ${at}`);
}

/** Characters by the byte behind the backslash; 0 for none. */
const escapes = new Uint8Array(256);
for (const [, name, value] of '""\\\\//b\bf\fn\nr\rt\t'.matchAll(/(.)(.)/gs)) {
  escapes[name!.charCodeAt(0)] = value!.charCodeAt(0);
}

/**
 * Reads the string whose opening quote is next, as bytes: a view of the text if nothing is escaped. As in Triton, bytes
 * are not checked to be UTF-8, and a lone low surrogate is written in three bytes.
 */
export function readString(cursor: Cursor): Uint8Array {
  const { bytes } = cursor;
  const start = cursor.at + 1;
  let at = start;
  for (;;) {
    const code = bytes[at];
    if (code === QUOTE) {
      cursor.at = at + 1;
      return bytes.subarray(start, at);
    }
    if (code === BACKSLASH) return readEscaped(cursor, start, at);
    if (code === undefined || code < SPACE) throw controlCharacter(code, at);
    at++;
  }
}

/** Bytes without their escapes, as far as they have been read. Escapes never make a text shorter. */
interface Unescaped {
  readonly bytes: Uint8Array;
  length: number;
}

function readEscaped(cursor: Cursor, start: number, firstEscape: number): Uint8Array {
  const out = { bytes: new Uint8Array(closingQuote(cursor.bytes, firstEscape) - start), length: 0 };
  unescapeInto(cursor, start, firstEscape, out);
  return out.bytes.subarray(0, out.length);
}

/**
 * Adds the string from `start` on to `out`, which has room for it as written.
 *
 * @param firstEscape offset of its first escape
 */
export function unescapeInto(cursor: Cursor, start: number, firstEscape: number, out: Unescaped): void {
  const { bytes } = cursor;
  for (let at = start; at < firstEscape; at++) out.bytes[out.length++] = bytes[at]!;
  cursor.at = firstEscape;
  for (;;) {
    const code = bytes[cursor.at];
    if (code === QUOTE) break;
    if (code === BACKSLASH) readEscape(cursor, out);
    else if (code === undefined || code < SPACE) throw controlCharacter(code, cursor.at);
    else {
      out.bytes[out.length++] = code;
      cursor.at++;
    }
  }
  cursor.at++;
}

/** Offset of the quote that closes a string whose content begins at `from`; the length of the text without one. */
export function closingQuote(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(QUOTE, from);
  while (at >= 0) {
    let before = at;
    while (before > from && bytes[before - 1] === BACKSLASH) before--;
    if ((at - before) % 2 === 0) return at;
    at = bytes.indexOf(QUOTE, at + 1);
  }
  return bytes.length;
}

function readEscape(cursor: Cursor, out: Unescaped): void {
  const start = cursor.at;
  const name = cursor.bytes[start + 1];
  const plain = name === undefined ? 0 : escapes[name]!;
  cursor.at = start + 2;
  if (plain !== 0) out.bytes[out.length++] = plain;
  else if (name === LOWER_U) pushUtf8(out, readCodePoint(cursor, start));
  else throw syntaxError("Invalid escape character in string.", start);
}

function readCodePoint(cursor: Cursor, escapeStart: number): number {
  const first = readHex(cursor, escapeStart);
  if (first < 0xd800 || first > 0xdbff) return first;
  if (!consume(cursor, BACKSLASH) || !consume(cursor, LOWER_U)) throw badSurrogate(escapeStart);
  const second = readHex(cursor, escapeStart);
  if (second < 0xdc00 || second > 0xdfff) throw badSurrogate(escapeStart);
  return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

function readHex(cursor: Cursor, escapeStart: number): number {
  let value = 0;
  for (let i = 0; i < 4; i++) {
    const digit = hexDigit(cursor.bytes[cursor.at]);
    if (digit < 0) throw syntaxError("Incorrect hex digit after \\u escape in string.", escapeStart);
    value = value * 16 + digit;
    cursor.at++;
  }
  return value;
}

function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= ZERO && code <= NINE) return code - ZERO;
  // The lower case of a letter.
  const letter = (code | 0x20) - LOWER_A;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

function pushUtf8(out: Unescaped, codePoint: number): void {
  const { bytes } = out;
  const further = codePoint < 0x80 ? 0 : codePoint < 0x800 ? 1 : codePoint < 0x10000 ? 2 : 3;
  const lead = further === 0 ? 0 : (0xff00 >> (further + 1)) & 0xff;
  bytes[out.length++] = lead | (codePoint >> (6 * further));
  for (let shift = 6 * (further - 1); shift >= 0; shift -= 6) {
    bytes[out.length++] = 0x80 | ((codePoint >> shift) & 0x3f);
  }
}

function controlCharacter(code: number | undefined, at: number) {
  return code === undefined || code === 0
    ? syntaxError("Missing a closing quotation mark in string.", at)
    : syntaxError("Invalid escape character in string.", at);
}

function badSurrogate(at: number) {
  return syntaxError("The surrogate pair in string is invalid.", at);
}
