import { MAX_DATA_DEPTH } from "../limits.js";
import {
  CARRIAGE_RETURN,
  CLOSE_BRACKET,
  COMMA,
  DOT,
  LINE_FEED,
  LOWER_E,
  MINUS,
  NINE,
  OPEN_BRACKET,
  SPACE,
  TAB,
  UPPER_E,
  UPPER_I,
  UPPER_N,
  ZERO,
} from "./ascii.js";
import type { Cursor } from "./cursor.js";
import { nearestDouble, powersOfTen } from "./decimal.js";
import { PackedNumbers } from "./json-value.js";
import { readNumber } from "./read-number.js";

/*
 * The fast path for tensors. One loop over the bytes of an array writes its numbers into a scratch array that all
 * requests share. A number of up to 15 digits is exact as (digits as an integer) / (power of ten), both of which
 * a double holds exactly, so the division rounds once, as it should; longer decimals go to `nearestDouble`, all other
 * numbers to `readNumber`.
 */

const EXACT_DIGITS = 15;
const MAX_KEPT_SCRATCH = 1 << 20;

let scratch: Float64Array = new Float64Array(1024);

/**
 * Reads the array whose bracket is next if it holds numbers only. Otherwise returns undefined and leaves the
 * cursor where the reading failed: the general parser starts over from the bracket and reports what is wrong.
 */
export function readPacked(cursor: Cursor): PackedNumbers | undefined {
  const { bytes } = cursor;
  const start = cursor.at;
  let values = scratch;
  let at = start;
  let depth = 0;
  let count = 0;
  let integers = true;
  let negative = false;
  let nested = false;
  let valueExpected = true;
  for (;;) {
    const token = bytes[at];
    if (token === undefined) break;
    if (token === COMMA) {
      if (valueExpected) break;
      valueExpected = true;
      at++;
    } else if (valueExpected && isNumberStart(token)) {
      const tokenStart = at;
      let code: number | undefined = token;
      if (token === MINUS) code = bytes[++at];
      const firstDigit = at;
      let mantissa = 0;
      while (code !== undefined && code >= ZERO && code <= NINE) {
        mantissa = mantissa * 10 + (code - ZERO);
        code = bytes[++at];
      }
      const integerDigits = at - firstDigit;
      let fractionDigits = 0;
      if (code === DOT) {
        const firstFractionDigit = ++at;
        code = bytes[at];
        while (code !== undefined && code >= ZERO && code <= NINE) {
          mantissa = mantissa * 10 + (code - ZERO);
          code = bytes[++at];
        }
        fractionDigits = at - firstFractionDigit;
        if (fractionDigits === 0) break;
        integers = false;
      }
      if (integerDigits > 1 && bytes[firstDigit] === ZERO) break;
      let value: number | undefined;
      if (integerDigits > 0 && code !== LOWER_E && code !== UPPER_E) {
        if (integerDigits + fractionDigits <= EXACT_DIGITS) {
          value = fractionDigits > 0 ? mantissa / powersOfTen[fractionDigits]! : mantissa;
        } else if (fractionDigits > 0) value = nearestDouble(bytes, firstDigit, at, fractionDigits);
      }
      if (value !== undefined) {
        // The integer -0 is 0, the double -0.0 keeps its sign.
        if (token === MINUS && (fractionDigits > 0 || value !== 0)) value = -value;
      } else {
        cursor.at = tokenStart;
        const read = readNumber(cursor);
        at = cursor.at;
        if (typeof read === "bigint") break;
        if (typeof read === "number") value = read;
        else {
          integers = false;
          value = read.value;
        }
      }
      if (value < 0) negative = true;
      if (count === values.length) values = growScratch();
      values[count++] = value;
      valueExpected = false;
    } else if (token === CLOSE_BRACKET) {
      if (valueExpected) break;
      at++;
      if (--depth === 0) {
        cursor.at = at;
        return new PackedNumbers(takeScratch(count), integers, negative, nested, bytes, start);
      }
    } else if (token === OPEN_BRACKET) {
      if (!valueExpected || ++depth >= MAX_DATA_DEPTH) break;
      if (depth > 1) nested = true;
      at++;
    } else if (token === SPACE || token === LINE_FEED || token === CARRIAGE_RETURN || token === TAB) {
      at++;
    } else {
      break;
    }
  }
  cursor.at = at;
  return undefined;
}

/** Digits, a minus, and the capitals that open `NaN` and `Infinity`. */
function isNumberStart(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS || code === UPPER_N || code === UPPER_I;
}

function growScratch(): Float64Array {
  const grown = new Float64Array(scratch.length * 2);
  grown.set(scratch);
  scratch = grown;
  return grown;
}

function takeScratch(count: number): Float64Array {
  const taken = scratch.slice(0, count);
  if (scratch.length > MAX_KEPT_SCRATCH) scratch = new Float64Array(1024);
  return taken;
}
