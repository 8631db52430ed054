import {
  type Cursor,
  consume,
  consumeAll,
  DOT,
  LOWER_E,
  LOWER_I,
  MINUS,
  NINE,
  PLUS,
  syntaxError,
  UPPER_E,
  UPPER_I,
  UPPER_N,
  ZERO,
} from "./cursor.js";
import { JsonDouble } from "./json-value.js";

/*
 * Reads decimals of 16 to 22 digits, the usual form of printed doubles, without a string for each. Two doubles hold the
 * digits exactly. They are divided by a power of ten (exact up to 10^22), and the remainder is carried along. So the
 * quotient is known to about 105 bits. If that does not settle which double is nearest, there is no answer, and the
 * caller takes the slow path.
 */

const HEAD_DIGITS = 15;
const TAIL_DIGITS = 7;
const MAX_POWER = 22;
/**
 * Far above the error of the correction. In nearly all cases, far below the distance of the correction from a half
 * unit.
 */
const DOUBT = 2 ** -48;
/** Veltkamp's constant: splits a double into halves of 26 bits. */
const SPLITTER = 2 ** 27 + 1;

/** 10^0 to 10^22: the powers of ten that are doubles. */
export const powersOfTen = Float64Array.from({ length: MAX_POWER + 1 }, (_, exponent) =>
  Number(`1e${exponent}`),
);

/**
 * The double nearest to the decimal from `from` to `to`: digits, a dot, `fractionDigits` digits. `undefined` when this
 * method cannot decide.
 */
export function nearestDouble(
  bytes: Uint8Array,
  from: number,
  to: number,
  fractionDigits: number,
): number | undefined {
  let head = 0;
  let headDigits = 0;
  let tail = 0;
  let tailDigits = 0;
  for (let at = from; at < to; at++) {
    const code = bytes[at]!;
    if (code === DOT) continue;
    if (headDigits < HEAD_DIGITS) {
      head = head * 10 + (code - ZERO);
      if (head !== 0) headDigits++;
    } else {
      tail = tail * 10 + (code - ZERO);
      tailDigits++;
    }
  }
  if (tailDigits > TAIL_DIGITS || fractionDigits > MAX_POWER) return undefined;
  const scale = powersOfTen[tailDigits]!;
  const shifted = head * scale;
  const digits = shifted + tail;
  const digitsError = shifted - digits + tail + productError(head, scale, shifted);
  const divisor = powersOfTen[fractionDigits]!;
  const quotient = digits / divisor;
  const product = quotient * divisor;
  const remainder = digits - product - productError(quotient, divisor, product) + digitsError;
  const correction = remainder / divisor;
  const nearest = quotient + correction * (1 - DOUBT);
  return nearest === quotient + correction * (1 + DOUBT) ? nearest : undefined;
}

/** The rounding error of `product`, the rounded `a * b` (Dekker). */
export function productError(a: number, b: number, product: number): number {
  const aScaled = a * SPLITTER;
  const aHigh = aScaled - (aScaled - a);
  const aLow = a - aHigh;
  const bScaled = b * SPLITTER;
  const bHigh = bScaled - (bScaled - b);
  const bLow = b - bHigh;
  return aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow;
}

const MIN_INT64 = -(2n ** 63n);
const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_EXPONENT = 308;

function isDigit(code: number | undefined): boolean {
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

/*
 * The inner loop of the fast path for tensors. It reads numbers with a comma between them, and nothing else. It is
 * written for the compiler:
 *
 * - local variables, and no object for each number;
 * - no call for numbers of up to 9 characters;
 * - 32-bit arithmetic, which a number that is too large leaves without harm.
 *
 *   12.5,-3,0.25]
 *   mantissa 125, 1 digit of fraction: 125 / 10
 *
 * Both numbers are exact, so the division rounds once, correctly.
 */

/** Most digits of which a double holds every combination. */
const EXACT_DIGITS = 15;

/** State of a run. One object serves all runs. */
export interface Run {
  /** Where to start reading; after the run, where it ended. */
  at: number;
  /** Number of values. */
  count: number;
  /** True when another value must follow: there was a comma, or nothing was read. */
  valueExpected: boolean;
  /** Index of the first value with a fraction; negative while there is none. */
  fractionAt: number;
  minuses: boolean;
}

/** True when the last byte of a text ends a number: the loops over digits do not check for the end of the text. */
export function endsRuns(bytes: Uint8Array): boolean {
  const last = bytes[bytes.length - 1]!;
  return last !== DOT && !(last >= ZERO && last <= NINE);
}

/**
 * Reads numbers into `values`, until there are `room` values or a number has another form (an exponent, a name, too many
 * digits, a fault). It also stops after a number without a comma. The bytes must not end with a digit or a dot: see
 * {@link endsRuns}.
 */
export function readRun(bytes: Uint8Array, run: Run, values: Float64Array, room: number): void {
  // Literals inside the function: an exported constant is looked up at each use.
  const MINUS = 0x2d;
  const SPACE = 0x20;
  const ZERO = 0x30;
  const DOT_AS_DIGIT = -2;
  const COMMA_AS_DIGIT = -4;
  const UPPER_E_AS_DIGIT = 21;
  const LOWER_E_AS_DIGIT = 53;
  /** Longest number without its sign, in bytes, of which a signed 32-bit integer holds all digits. */
  const NARROW_LENGTH = 9;
  const powers = powersOfTen;
  let { at, count } = run;
  let fractionAt = run.fractionAt;
  let minuses = 0;
  let next = at;
  let valueExpected = true;
  while (count < room) {
    let code = bytes[next]!;
    let minus = 0;
    if (code === MINUS) {
      minus = 1;
      code = bytes[++next]!;
    }
    const first = next;
    let mantissa = code - ZERO;
    if (!(mantissa >= 0 && mantissa <= 9)) break;
    let digit = (bytes[++next]! - ZERO) | 0;
    if (digit >>> 0 <= 9) {
      if (mantissa === 0) break;
      // Two digits in each step: each multiplication waits for the one before it.
      do {
        const second = (bytes[next + 1]! - ZERO) | 0;
        if (second >>> 0 <= 9) {
          mantissa = (Math.imul(mantissa, 100) + Math.imul(digit, 10) + second) | 0;
          next += 2;
          digit = (bytes[next]! - ZERO) | 0;
        } else {
          mantissa = (Math.imul(mantissa, 10) + digit) | 0;
          next++;
          digit = second;
        }
      } while (digit >>> 0 <= 9);
    }
    let fraction = 0;
    if (digit === DOT_AS_DIGIT) {
      const dot = next;
      digit = (bytes[++next]! - ZERO) | 0;
      while (digit >>> 0 <= 9) {
        const second = (bytes[next + 1]! - ZERO) | 0;
        if (second >>> 0 <= 9) {
          mantissa = (Math.imul(mantissa, 100) + Math.imul(digit, 10) + second) | 0;
          next += 2;
          digit = (bytes[next]! - ZERO) | 0;
        } else {
          mantissa = (Math.imul(mantissa, 10) + digit) | 0;
          next++;
          digit = second;
        }
      }
      fraction = next - dot - 1;
      if (fraction === 0) break;
      if (fractionAt < 0) fractionAt = count;
    }
    if (digit === LOWER_E_AS_DIGIT || digit === UPPER_E_AS_DIGIT) break;
    if (next - first > NARROW_LENGTH) {
      const value = wideValue(bytes, first, next, fraction);
      if (value < 0) break;
      // The integer -0 is 0, the double -0.0 keeps its sign.
      values[count++] = minus === 0 ? value : fraction > 0 ? -value : 0 - value;
    } else if (fraction > 0) {
      const value = mantissa / powers[fraction]!;
      values[count++] = minus === 0 ? value : -value;
    } else {
      values[count++] = minus === 0 ? mantissa : 0 - mantissa;
    }
    minuses |= minus;
    at = next;
    if (digit !== COMMA_AS_DIGIT) {
      valueExpected = false;
      break;
    }
    next = ++at;
    if (bytes[next] === SPACE) next = ++at;
  }
  run.at = at;
  run.count = count;
  run.valueExpected = valueExpected;
  run.fractionAt = fractionAt;
  if (minuses !== 0) run.minuses = true;
}

/** Value of digits that exceed 32 bits; negative when this method cannot know it. */
function wideValue(bytes: Uint8Array, from: number, to: number, fraction: number): number {
  let digits = fraction > 0 ? to - from - 1 : to - from;
  if (bytes[from] === ZERO) digits--;
  if (digits > EXACT_DIGITS && fraction > 0) return nearestDouble(bytes, from, to, fraction) ?? -1;
  let value = 0;
  for (let at = from; at < to; at++) {
    const code = bytes[at]!;
    if (code !== DOT) value = value * 10 + (code - ZERO);
  }
  if (digits > EXACT_DIGITS && value > Number.MAX_SAFE_INTEGER) return -1;
  return fraction > 0 ? value / powersOfTen[fraction]! : value;
}
