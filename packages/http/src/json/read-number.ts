import { DOT, LOWER_E, LOWER_I, MINUS, NINE, PLUS, UPPER_E, UPPER_I, UPPER_N, ZERO } from "./ascii.js";
import { type Cursor, consume, consumeAll, syntaxError } from "./cursor.js";
import { powersOfTen } from "./decimal.js";
import { JsonDouble } from "./json-value.js";

const MIN_INT64 = -(2n ** 63n);
const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_EXPONENT = 308;

/** True for the bytes `0` to `9`. */
export function isDigit(code: number | undefined): boolean {
  return code !== undefined && code >= ZERO && code <= NINE;
}

/** Reads the next number: an integer of at most 64 bits as an integer, any other as a double. */
export function readNumber(cursor: Cursor): number | bigint | JsonDouble {
  const { bytes } = cursor;
  const start = cursor.at;
  const minus = consume(cursor, MINUS);
  const first = bytes[cursor.at];
  if (first === UPPER_N || first === UPPER_I) return readNamed(cursor, minus);
  if (!isDigit(first)) throw syntaxError("Invalid value.", cursor.at);
  if (first === ZERO) cursor.at++;
  else skipDigits(cursor);
  const integer = bytes[cursor.at] !== DOT && bytes[cursor.at] !== LOWER_E && bytes[cursor.at] !== UPPER_E;
  if (!integer) skipFractionAndExponent(cursor, start);
  const short = shortDecimal(bytes, minus ? start + 1 : start, cursor.at);
  if (short >= 0) {
    if (integer) return minus ? 0 - short : short;
    return new JsonDouble(minus ? -short : short);
  }
  const text = cursor.buffer.toString("latin1", start, cursor.at);
  if (integer) {
    const value = Number(text);
    if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
    const exact = text.length <= 20 ? BigInt(text) : MAX_UINT64 + 1n;
    if (exact >= MIN_INT64 && exact <= MAX_UINT64) return exact;
  }
  const value = Number(text);
  if (!Number.isFinite(value)) throw syntaxError("Number too big to be stored in double.", start);
  return new JsonDouble(value);
}

/** Longest number that is read without a string, in bytes: 15 digits, a dot and an exponent of two digits. */
const MAX_SHORT = 20;
const MAX_EXACT_DIGITS = 15;

/** Value of a number without its sign; -1 if it has too many digits for one exact operation. */
function shortDecimal(bytes: Uint8Array, from: number, to: number): number {
  if (to - from > MAX_SHORT) return -1;
  let mantissa = 0;
  let digits = 0;
  let power = 0;
  let fraction = 0;
  for (let at = from; at < to; at++) {
    const code = bytes[at]!;
    if (code === DOT) fraction = 1;
    else if (code === LOWER_E || code === UPPER_E) {
      power += exponentOf(bytes, at + 1, to);
      break;
    } else {
      mantissa = mantissa * 10 + (code - ZERO);
      digits++;
      power -= fraction;
    }
  }
  if (digits > MAX_EXACT_DIGITS || power >= powersOfTen.length || -power >= powersOfTen.length) return -1;
  return power < 0 ? mantissa / powersOfTen[-power]! : mantissa * powersOfTen[power]!;
}

function exponentOf(bytes: Uint8Array, from: number, to: number): number {
  const sign = bytes[from];
  let exponent = 0;
  for (let at = sign === PLUS || sign === MINUS ? from + 1 : from; at < to; at++) {
    exponent = exponent * 10 + (bytes[at]! - ZERO);
  }
  return sign === MINUS ? -exponent : exponent;
}

function skipDigits(cursor: Cursor): number {
  const from = cursor.at;
  while (isDigit(cursor.bytes[cursor.at])) cursor.at++;
  return cursor.at - from;
}

function skipFractionAndExponent(cursor: Cursor, start: number): void {
  let fractionDigits = 0;
  if (consume(cursor, DOT)) {
    fractionDigits = skipDigits(cursor);
    if (fractionDigits === 0) throw syntaxError("Miss fraction part in number.", cursor.at);
  }
  if (!consume(cursor, LOWER_E) && !consume(cursor, UPPER_E)) return;
  const negative = !consume(cursor, PLUS) && consume(cursor, MINUS);
  const from = cursor.at;
  let exponent = 0;
  while (isDigit(cursor.bytes[cursor.at])) {
    exponent = Math.min(exponent * 10 + cursor.bytes[cursor.at]! - ZERO, Number.MAX_SAFE_INTEGER / 16);
    cursor.at++;
  }
  if (cursor.at === from) throw syntaxError("Miss exponent in number.", cursor.at);
  // An exponent that is too large is rejected for every mantissa, zero included.
  if (!negative && exponent > MAX_EXPONENT + fractionDigits) {
    throw syntaxError("Number too big to be stored in double.", start);
  }
}

function readNamed(cursor: Cursor, minus: boolean): JsonDouble {
  if (cursor.bytes[cursor.at] === UPPER_N) {
    if (consumeAll(cursor, "NaN")) return new JsonDouble(Number.NaN);
  } else if (consumeAll(cursor, "Inf")) {
    if (cursor.bytes[cursor.at] !== LOWER_I || consumeAll(cursor, "inity")) {
      return new JsonDouble(minus ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY);
    }
  }
  throw syntaxError("Invalid value.", cursor.at);
}
