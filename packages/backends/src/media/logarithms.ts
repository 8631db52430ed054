/** Bits of the mantissa that choose a row of the table. */
const BITS = 7;
const ROWS = 2 ** BITS;

/** For the middle of each part of the numbers from 1 to 2: its reciprocal, and its logarithm. */
const RECIPROCALS = new Float64Array(ROWS);
const LOGARITHMS = new Float64Array(ROWS);
for (let i = 0; i < ROWS; i++) {
  // The first part has 1 in place of its middle, so that powers of two are exact.
  const middle = i === 0 ? 1 : 1 + (i + 0.5) / ROWS;
  RECIPROCALS[i] = 1 / middle;
  LOGARITHMS[i] = Math.log(middle);
}

const BIAS = 1023;
/** Reciprocals of the powers of two, by the biased exponent. */
const SCALES = Float64Array.from({ length: 2 * BIAS }, (_, exponent) => 2 ** (BIAS - exponent));

/**
 * Natural logarithms of many numbers at a time, to an error of 2e-12. `Math.log` takes twice as long for numbers of
 * different sizes, because the processor cannot predict its branches.
 *
 * A number is 2^e * m with m from 1 to 2, and the first bits of m choose a c close to it in a table:
 * `log(x) = e log(2) + log(c) + log(1 + r)` with `r = m / c - 1`, whose series is short.
 */
export class Logarithms {
  /** The numbers, all of them positive and not subnormal. */
  readonly values: Float64Array;
  readonly #words: Int32Array;

  constructor(count: number) {
    this.values = new Float64Array(count);
    this.#words = new Int32Array(this.values.buffer);
  }

  /** Writes the logarithms from a place on. */
  writeTo(target: Float32Array, offset: number): void {
    const values = this.values;
    const words = this.#words;
    for (let i = 0; i < values.length; i++) {
      const high = words[2 * i + 1]!;
      const exponent = high >>> 20;
      const row = (high >>> (20 - BITS)) & (ROWS - 1);
      const r = values[i]! * SCALES[exponent]! * RECIPROCALS[row]! - 1;
      const series = r * (1 - r * (0.5 - r * (1 / 3 - r * (0.25 - 0.2 * r))));
      target[offset + i] = (exponent - BIAS) * Math.LN2 + LOGARITHMS[row]! + series;
    }
  }
}
