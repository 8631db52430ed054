const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** Key of missing values: larger than the key of infinity. */
export const MISSING_KEY = 0x7fffffff;

/** Largest key of a number, that of infinity. */
export const LARGEST_KEY = 0x7f800000;

/** Key of 1e-35, up to which LightGBM takes a value for 0. */
export const ZERO_KEY = floatKey(1e-35);

/** A key that no other key is below. */
export const SMALLEST_KEY = -0x80000000;

/**
 * Integer in the order of 32-bit floats: `a < b` exactly if `floatKey(a) < floatKey(b)`. Both zeros have key 0, and
 * `floatKey(-a) === -floatKey(a)`.
 *
 * @param value a number that is not NaN
 */
export function floatKey(value: number): number {
  float[0] = value;
  const magnitude = bits[0]! & 0x7fffffff;
  return bits[0]! < 0 ? -magnitude : magnitude;
}

/** Key `k` for which `floatKey(x) < k` exactly if `x < limit`, for all 32-bit floats `x`. */
export function keyBelow(limit: number): number {
  const key = floatKey(limit);
  return Math.fround(limit) < limit ? key + 1 : key;
}

/** Key `k` for which `floatKey(x) < k` exactly if `x <= limit`, for all 32-bit floats `x`. */
export function keyAtMost(limit: number): number {
  const key = floatKey(limit);
  return Math.fround(limit) > limit ? key : key + 1;
}
