/**
 * Formats a number like C's `%f`: six decimals, an exact half rounded to even, all digits before the point.
 *
 * @example `fixedText(0.1)` is `0.100000`, `fixedText(1e21)` is `1000000000000000000000.000000`
 */
export function fixedText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (value < 0 || Object.is(value, -0)) return `-${fixedText(-value)}`;
  if (value >= 1e21) return `${BigInt(value)}.000000`;
  // Seven decimals show a half exactly if the value is a multiple of 2^-7: no other value can end after the seventh.
  const seven = value.toFixed(7);
  const isHalf = Number.isInteger(value * 128) && seven.endsWith("5");
  const lastDigitIsEven = Number(seven.at(-2)) % 2 === 0;
  return isHalf && lastDigitIsEven ? seven.slice(0, -1) : value.toFixed(6);
}
