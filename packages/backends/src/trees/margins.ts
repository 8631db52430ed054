import {
  FIRST_CODE,
  type Forest,
  LARGEST_KEY,
  MAX_CATEGORY,
  MISSING_CODE,
  MISSING_KEY,
  NO_CODE,
  TREES_AT_ONCE,
  ZERO_KEY,
} from "./forest.js";
import { addMemory, type Kernel, kernelOf } from "./kernel.js";

/**
 * Computes the sums of a forest's leaves. One for each thread, because it keeps its working memory: computing allocates
 * nothing for a row.
 */
export class MarginComputer {
  readonly #kernel: Kernel;
  readonly #keys: Int32Array;
  readonly #sums: Float64Array;
  #all = new Float64Array(0);

  /** @param workAt address of {@link addWorkMemory}, which no other thread may use at the same time */
  constructor(
    private readonly forest: Forest,
    workAt = addWorkMemory(forest),
  ) {
    const { memory, blockRows, groups } = forest;
    this.#kernel = kernelOf(memory);
    this.#keys = new Int32Array(memory.buffer, workAt, keyCount(forest));
    this.#sums = new Float64Array(memory.buffer, workAt + 4 * keyCount(forest), blockRows * groups);
  }

  /**
   * Sums of `rows` rows, `groups` for each. The array is valid until the next call.
   *
   * @param values rows one after another
   * @param columns number of columns of a row
   */
  compute(values: Float32Array, columns: number, firstRow: number, rows: number): Float64Array {
    const { groups, blockRows } = this.forest;
    const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
    if (rows <= blockRows) {
      this.#computeBlock(values, bits, columns, firstRow, rows);
      return this.#sums;
    }
    if (this.#all.length < rows * groups) this.#all = new Float64Array(rows * groups);
    for (let done = 0; done < rows; done += blockRows) {
      const count = Math.min(blockRows, rows - done);
      this.#computeBlock(values, bits, columns, firstRow + done, count);
      this.#all.set(count === blockRows ? this.#sums : this.#sums.subarray(0, count * groups), done * groups);
    }
    return this.#all;
  }

  #computeBlock(
    values: Float32Array,
    bits: Int32Array,
    columns: number,
    firstRow: number,
    rows: number,
  ): void {
    const { groups, base, averages } = this.forest;
    const [sums, keys] = [this.#sums, this.#keys];
    for (let i = 0; i < rows * groups; i++) sums[i] = averages ? 0 : base[i % groups]!;
    writeRowKeys(values, bits, columns, firstRow, rows, this.forest, keys);
    const together = rows - (rows % TREES_AT_ONCE);
    if (together > 0) this.#kernel.addRows(keys.byteOffset, sums.byteOffset, together);
    for (let row = together; row < rows; row++)
      this.#kernel.addRow(keys.byteOffset + 4 * row, sums.byteOffset + 8 * row * groups);
    if (averages) this.#average(rows);
  }

  #average(rows: number): void {
    const { groups, base, treesOfGroup } = this.forest;
    for (let row = 0; row < rows; row++) {
      for (let group = 0; group < groups; group++) {
        const place = row * groups + group;
        this.#sums[place] = this.#sums[place]! / treesOfGroup[group]! + base[group]!;
      }
    }
  }
}

/** Number of keys of a block. */
export function keyCount({ usedFeatures, blockRows }: Forest): number {
  return 2 * usedFeatures.length * blockRows + blockRows;
}

/** Adds the working memory of a {@link MarginComputer} to a forest's memory, and returns its address. */
export function addWorkMemory(forest: Forest): number {
  const bytes = 4 * keyCount(forest) + 8 * forest.blockRows * forest.groups;
  return addMemory(forest.memory, bytes);
}

/** Writes the two keys of each used feature, for the rows of a block: the same key of all rows, then the next. */
export function writeRowKeys(
  values: Float32Array,
  bits: Int32Array,
  columns: number,
  firstRow: number,
  rows: number,
  { usedFeatures, zeroMissingSlots, categorySlots, blockRows }: Forest,
  keys: Int32Array,
): void {
  const used = usedFeatures.length;
  for (let slot = 0; slot < used; slot++) {
    let at = firstRow * columns + usedFeatures[slot]!;
    let place = 2 * slot * blockRows;
    for (let row = 0; row < rows; row++) {
      const value = bits[at]!;
      const sign = value >> 31;
      const key = ((value ^ (sign & 0x7fffffff)) - sign) | 0;
      const isMissing = key > LARGEST_KEY || key < -LARGEST_KEY;
      keys[place] = isMissing ? MISSING_KEY : key;
      keys[place + blockRows] = isMissing ? MISSING_KEY : -key;
      place++;
      at += columns;
    }
  }
  for (const slot of zeroMissingSlots) {
    for (let row = 0; row < rows; row++) {
      const place = 2 * slot * blockRows + row;
      if (Math.abs(keys[place]!) > ZERO_KEY) continue;
      keys[place] = MISSING_KEY;
      keys[place + blockRows] = MISSING_KEY;
    }
  }
  for (const slot of categorySlots) {
    for (let row = 0; row < rows; row++)
      keys[2 * slot * blockRows + row] = codeOf(values[(firstRow + row) * columns + usedFeatures[slot]!]!);
  }
}

/** Code of the category that the whole part of a value is. Negative values are none. */
function codeOf(value: number): number {
  if (Number.isNaN(value)) return MISSING_CODE;
  return value < 0 || value > MAX_CATEGORY ? NO_CODE : Math.trunc(value) + FIRST_CODE;
}

/**
 * True if a row goes from a node to its first child.
 *
 * @param keys keys of a block, whose first row it is
 */
export function firstChildTakes({ integers }: Forest, node: number, keys: Int32Array): boolean {
  const at = node >> 2;
  const key = keys[integers[at]! >> 2]!;
  const limit = integers[at + 1]!;
  const size = -1 - integers[at + 3]!;
  if (size === 0) return key < limit;
  const set = limit >> 2;
  if ((limit & 1) === 1) return integers.subarray(set, set + size).includes(key);
  return key < size && ((integers[set + (key >> 5)]! >> (key & 31)) & 1) === 1;
}
