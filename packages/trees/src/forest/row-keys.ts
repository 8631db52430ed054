import { LARGEST_KEY, MISSING_KEY, ZERO_KEY } from "./float-key.js";
import type { Forest } from "./forest.js";

/**
 * Writes the two keys of each used feature, for rows one after another.
 *
 * @param bits the bits of the rows
 * @param columns number of columns of a row
 */
export function writeRowKeys(
  bits: Int32Array,
  columns: number,
  firstRow: number,
  rows: number,
  { usedFeatures, zeroMissingSlots }: Forest,
  keys: Int32Array,
): void {
  const used = usedFeatures.length;
  let place = 0;
  for (let row = firstRow; row < firstRow + rows; row++) {
    const start = row * columns;
    for (let slot = 0; slot < used; slot++) {
      const value = bits[start + usedFeatures[slot]!]!;
      const sign = value >> 31;
      const key = ((value ^ (sign & 0x7fffffff)) - sign) | 0;
      if (key > LARGEST_KEY || key < -LARGEST_KEY) {
        keys[place] = MISSING_KEY;
        keys[place + 1] = MISSING_KEY;
      } else {
        keys[place] = key;
        keys[place + 1] = -key;
      }
      place += 2;
    }
  }
  for (const slot of zeroMissingSlots) {
    for (let at = 2 * slot; at < 2 * used * rows; at += 2 * used) {
      if (Math.abs(keys[at]!) > ZERO_KEY) continue;
      keys[at] = MISSING_KEY;
      keys[at + 1] = MISSING_KEY;
    }
  }
}
