import { DOT, NINE, ZERO } from "./ascii.js";
import { nearestDouble, powersOfTen } from "./decimal.js";

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
  /** True when a number had a minus. */
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
