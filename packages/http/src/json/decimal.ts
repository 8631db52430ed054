import { DOT, ZERO } from "./ascii.js";

/*
 * Decimals of 16 to 22 digits, which is how most programs print doubles, without a string for each. The digits are
 * held exactly in two doubles, and divided by a power of ten (exact up to 10^22) with the remainder carried along:
 * the quotient is then known to about 105 bits. Where that does not settle which double is the nearest, there is no
 * answer, and the caller takes the slow way.
 */

const HEAD_DIGITS = 15;
const TAIL_DIGITS = 7;
const MAX_POWER = 22;
/** Far above the error of the correction, far below its distance from a half unit in nearly all cases. */
const DOUBT = 2 ** -48;
/** Veltkamp's constant: splits a double into halves of 26 bits. */
const SPLITTER = 2 ** 27 + 1;

/** 10^0 to 10^22: the powers of ten that are doubles. */
export const powersOfTen = Float64Array.from({ length: MAX_POWER + 1 }, (_, exponent) =>
  Number(`1e${exponent}`),
);

/**
 * The double nearest to the decimal at `from` up to `to`: digits, a dot, `fractionDigits` digits. `undefined` when that
 * takes more than this function has.
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

/** What `product`, the rounded `a * b`, lacks (Dekker). */
export function productError(a: number, b: number, product: number): number {
  const aScaled = a * SPLITTER;
  const aHigh = aScaled - (aScaled - a);
  const aLow = a - aHigh;
  const bScaled = b * SPLITTER;
  const bHigh = bScaled - (bScaled - b);
  const bLow = b - bHigh;
  return aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow;
}
