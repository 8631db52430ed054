import { DOT, ZERO } from "./ascii.js";

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
