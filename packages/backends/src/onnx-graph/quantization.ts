/*
 * The arithmetic of quantisation, on plain arrays.
 *
 * A real number r is stored as an integer q with r = scale * (q - zeroPoint). Weights are symmetric, with a zero point
 * of 0 and a scale for each channel; inputs of layers have one scale and a zero point, so that 0 stays exactly 0 and
 * padding costs nothing.
 */

/** Where the channels of an array are: `[outer][channels][inner]`. */
interface ChannelLayout {
  readonly outer: number;
  readonly channels: number;
  readonly inner: number;
}

/** The layout of a shape whose channels are along an axis; one channel for all elements without an axis. */
export function layoutOf(dims: readonly number[], axis?: number): ChannelLayout {
  const product = (sizes: readonly number[]) => sizes.reduce((count, size) => count * size, 1);
  if (axis === undefined) return { outer: 1, channels: 1, inner: product(dims) };
  return { outer: product(dims.slice(0, axis)), channels: dims[axis]!, inner: product(dims.slice(axis + 1)) };
}

/** Rounds to the nearest integer, halves to the even one, as ONNX's QuantizeLinear does. */
export function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));

/** Largest integer of weights: 127, or 64 where two products may exceed 16 bits. */
export type WeightLimit = 127 | 64;

export interface QuantizedWeights {
  readonly values: Int8Array;
  /** One for each channel. */
  readonly scales: Float32Array;
}

/**
 * Quantises weights to int8, symmetrically for each channel. The error of each weight is at most half of its channel's
 * scale.
 *
 * @returns undefined for weights with NaN or infinity, which no integer stands for
 */
export function quantizeWeights(
  weights: Float32Array,
  { outer, channels, inner }: ChannelLayout,
  limit: WeightLimit = 127,
): QuantizedWeights | undefined {
  const largest = new Float32Array(channels);
  for (let i = 0, at = 0; i < outer; i++) {
    for (let channel = 0; channel < channels; channel++) {
      let most = largest[channel]!;
      for (const end = at + inner; at < end; at++) {
        const size = Math.abs(weights[at]!);
        if (Number.isNaN(size)) return undefined;
        if (size > most) most = size;
      }
      if (!Number.isFinite(most)) return undefined;
      largest[channel] = most;
    }
  }
  const scales = largest.map((most) => scaleOf(most, limit));
  const values = new Int8Array(weights.length);
  for (let i = 0, at = 0; i < outer; i++) {
    for (let channel = 0; channel < channels; channel++) {
      const scale = scales[channel]!;
      for (const end = at + inner; at < end; at++) {
        values[at] = clamp(roundEven(weights[at]! / scale), -limit, limit);
      }
    }
  }
  return { values, scales };
}

/** The scale for numbers up to `most`. It is a normal FP32 above 0, so that dividing by it is always possible. */
function scaleOf(most: number, limit: number): number {
  const scale = Math.fround(most / limit);
  return scale >= SMALLEST_SCALE ? scale : most === 0 ? 1 : SMALLEST_SCALE;
}

/** Smallest normal FP32. */
const SMALLEST_SCALE = 2 ** -126;

export function dequantizeWeights(
  { values, scales }: QuantizedWeights,
  { outer, channels, inner }: ChannelLayout,
): Float32Array {
  const weights = new Float32Array(values.length);
  for (let i = 0, at = 0; i < outer; i++) {
    for (let channel = 0; channel < channels; channel++) {
      for (const end = at + inner; at < end; at++) weights[at] = values[at]! * scales[channel]!;
    }
  }
  return weights;
}

/** Smallest and largest value of a tensor. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** Scale and zero point of a value with a range, as uint8. */
interface ActivationScale {
  readonly scale: number;
  readonly zeroPoint: number;
}

/** The scale and the zero point with which uint8 covers a range and 0. Zero becomes exactly the zero point. */
export function activationScale({ min, max }: ValueRange): ActivationScale {
  const [low, high] = [Math.min(0, min), Math.max(0, max)];
  const scale = scaleOf(high - low, 255);
  return { scale, zeroPoint: clamp(roundEven(-low / scale), 0, 255) };
}

interface WeightBlocks {
  /** `[columns][blocks][blockSize / 2]`, the first of two numbers in the low half of a byte. */
  readonly packed: Uint8Array;
  /** `[columns][blocks]`. */
  readonly scales: Float32Array;
  readonly blocks: number;
}

/**
 * Quantises a matrix of `rows` x `columns` to 4 bits in blocks of a column, as MatMulNBits reads it: a number q stands
 * for scale * (q - 8). The scale of a block is the one with the least square error among several: clipping the largest
 * weight a little makes the steps of all others smaller.
 *
 * @param at element of a row and a column
 * @returns undefined for weights with NaN or infinity
 */
export function quantizeBlocks(
  at: (row: number, column: number) => number,
  rows: number,
  columns: number,
  blockSize: number,
): WeightBlocks | undefined {
  const blocks = Math.ceil(rows / blockSize);
  const packed = new Uint8Array((columns * blocks * blockSize) / 2).fill(0x88);
  const scales = new Float32Array(columns * blocks);
  const floats = new Float32Array(blockSize);
  for (let column = 0; column < columns; column++) {
    for (let block = 0; block < blocks; block++) {
      const [start, end] = [block * blockSize, Math.min(rows, (block + 1) * blockSize)];
      const values = floats.subarray(0, end - start);
      for (let row = start; row < end; row++) values[row - start] = at(row, column);
      const scale = blockScale(values);
      if (scale === undefined) return undefined;
      const index = column * blocks + block;
      scales[index] = scale;
      if (scale === 0) continue;
      for (let row = start; row < end; row++) {
        const four = clamp(roundEven(values[row - start]! / scale) + 8, 0, 15);
        const place = (index * blockSize + row - start) >> 1;
        packed[place] =
          (row - start) % 2 === 0 ? (packed[place]! & 0xf0) | four : (packed[place]! & 0x0f) | (four << 4);
      }
    }
  }
  return { packed, scales, blocks };
}

/** Scales that are tried, as shares of the one that reaches the largest weight. */
const SHARES = [1, 0.96, 0.92, 0.88, 0.84, 0.8, 0.75];

/** The scale of a block: 0 for zeros alone, undefined for weights with NaN or infinity. */
function blockScale(values: Float32Array): number | undefined {
  let extreme = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) return undefined;
    if (Math.abs(value) > Math.abs(extreme)) extreme = value;
  }
  // The number 0 stands for -8 scales, so the largest weight decides the sign.
  const whole = Math.fround(extreme / -8);
  if (whole === 0) return 0;
  let [best, least] = [whole, Number.POSITIVE_INFINITY];
  for (const share of SHARES) {
    const scale = Math.fround(whole * share);
    let error = 0;
    for (const value of values) error += (value - scale * clamp(roundEven(value / scale), -8, 7)) ** 2;
    if (error < least) [best, least] = [scale, error];
  }
  return best;
}

/** The matrix that blocks stand for, row by row. */
export function dequantizeBlocks(
  { packed, scales, blocks }: WeightBlocks,
  rows: number,
  columns: number,
  blockSize: number,
): Float32Array {
  const matrix = new Float32Array(rows * columns);
  for (let column = 0; column < columns; column++) {
    for (let row = 0; row < rows; row++) {
      const index = column * blocks + Math.floor(row / blockSize);
      const byte = packed[(index * blockSize + (row % blockSize)) >> 1]!;
      const four = row % 2 === 0 ? byte & 0x0f : byte >> 4;
      matrix[row * columns + column] = scales[index]! * (four - 8);
    }
  }
  return matrix;
}

/** How calibration chooses the range of a value from the samples. */
export type CalibrationMethod = "min-max" | "entropy" | "percentile";

/** Bins on each side of 0. */
const BINS = 2048;

/** Levels to which the distribution is reduced when thresholds are compared, on each side of 0. */
const LEVELS = 128;

/**
 * Counts how often values occur, over a range around 0 that doubles when a value exceeds it. So the samples are read
 * once, in any order, and a histogram takes 32 KiB.
 *
 * ```
 *  -reach           0           reach       a value above reach: neighbours join, and reach doubles
 *    |..............|..............|
 *    0            BINS          2 BINS
 * ```
 */
export class ValueHistogram {
  #counts = new Float64Array(2 * BINS);
  #reach = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #count = 0;

  /** Counts values. NaN and infinities are left out: no range covers them. */
  add(values: ArrayLike<number>): void {
    let [min, max] = [this.#min, this.#max];
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
    if (min > max) return;
    [this.#min, this.#max] = [min, max];
    this.#reachTo(Math.max(-min, max, Number.MIN_VALUE));
    const perUnit = BINS / this.#reach;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value)) continue;
      const bin = clamp(Math.floor(value * perUnit) + BINS, 0, 2 * BINS - 1);
      this.#counts[bin] = this.#counts[bin]! + 1;
      this.#count++;
    }
  }

  /** Whether no finite value was counted. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /**
   * The range that a value is quantised over.
   *
   * @param percentile share of the values that the method `percentile` keeps, in percent
   */
  range(method: CalibrationMethod, percentile = 99.99): ValueRange {
    if (this.#count === 0) return { min: 0, max: 0 };
    const whole = { min: Math.min(0, this.#min), max: Math.max(0, this.#max) };
    if (method === "min-max" || this.#reach === 0) return whole;
    const limit = method === "entropy" ? undefined : this.#tails(percentile);
    const { min, max } = limit ?? this.#leastDivergence();
    return { min: Math.max(whole.min, min), max: Math.min(whole.max, max) };
  }

  #reachTo(size: number): void {
    if (this.#reach === 0) this.#reach = size;
    while (this.#reach < size) {
      const counts = new Float64Array(2 * BINS);
      for (let bin = 0; bin < 2 * BINS; bin++) {
        const joined = BINS / 2 + (bin >> 1);
        counts[joined] = counts[joined]! + this.#counts[bin]!;
      }
      this.#counts = counts;
      this.#reach *= 2;
    }
  }

  /** Cuts the same share off at both ends. */
  #tails(percentile: number): ValueRange {
    const cut = (this.#count * (1 - percentile / 100)) / 2;
    const edge = (bins: Iterable<number>) => {
      let seen = 0;
      for (const bin of bins) {
        seen += this.#counts[bin]!;
        if (seen > cut) return bin;
      }
      return BINS;
    };
    const all = Array.from({ length: 2 * BINS }, (_, bin) => bin);
    const width = this.#reach / BINS;
    return { min: (edge(all) - BINS) * width, max: (edge(all.toReversed()) + 1 - BINS) * width };
  }

  /**
   * The threshold at which the quantised distribution is nearest to that of the values, by the Kullback-Leibler
   * divergence: a smaller threshold clips more, a larger one has wider steps.
   */
  #leastDivergence(): ValueRange {
    const sizes = new Float64Array(BINS);
    for (let bin = 0; bin < BINS; bin++)
      sizes[bin] = this.#counts[BINS + bin]! + this.#counts[BINS - 1 - bin]!;
    let best = { divergence: Number.POSITIVE_INFINITY, bins: BINS };
    for (let bins = LEVELS; bins <= BINS; bins += LEVELS / 4) {
      const divergence = divergenceAt(sizes, bins);
      if (divergence < best.divergence) best = { divergence, bins };
    }
    const threshold = (best.bins * this.#reach) / BINS;
    return { min: -threshold, max: threshold };
  }
}

/** Divergence of a distribution from its form with `LEVELS` steps up to a threshold, the rest clipped to it. */
function divergenceAt(sizes: Float64Array, bins: number): number {
  const clipped = sizes.slice(0, bins);
  for (let bin = bins; bin < sizes.length; bin++) clipped[bins - 1] = clipped[bins - 1]! + sizes[bin]!;
  const total = clipped.reduce((sum, count) => sum + count, 0);
  const quantized = new Float64Array(bins);
  for (let level = 0; level < LEVELS; level++) {
    const [start, end] = [Math.floor((level * bins) / LEVELS), Math.floor(((level + 1) * bins) / LEVELS)];
    let [sum, filled] = [0, 0];
    for (let bin = start; bin < end; bin++) {
      sum += sizes[bin]!;
      if (clipped[bin]! > 0) filled++;
    }
    for (let bin = start; bin < end; bin++) if (clipped[bin]! > 0) quantized[bin] = sum / filled;
  }
  const kept = quantized.reduce((sum, count) => sum + count, 0);
  if (kept === 0) return Number.POSITIVE_INFINITY;
  let divergence = 0;
  for (let bin = 0; bin < bins; bin++) {
    const p = clipped[bin]! / total;
    if (p === 0) continue;
    const q = Math.max(quantized[bin]! / kept, 1e-12);
    divergence += p * Math.log(p / q);
  }
  return divergence;
}
