/** What follows the sixth decimal of a number that lies exactly between two of six decimals. */
const HALF = `5${"0".repeat(93)}`;

/**
 * A number as C's `%f` writes it: six decimals, an exact half rounded to even, all digits before the point.
 *
 * @example `fixedText(0.1)` is `0.100000`, `fixedText(1e21)` is `1000000000000000000000.000000`
 */
export function fixedText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}.000000`;
  if (Object.is(value, -0)) return "-0.000000";
  const exact = value.toFixed(100);
  const truncated = exact.slice(0, -HALF.length);
  const evenHalf = exact.endsWith(HALF) && Number(truncated.at(-1)) % 2 === 0;
  return evenHalf ? truncated : value.toFixed(6);
}
