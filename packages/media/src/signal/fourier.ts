/** Largest prime factor of a size: a factor p costs p operations for each value. */
const MAX_FACTOR = 31;

/**
 * Prime factors of a transform's size, with 4 in place of two times 2.
 *
 * @returns undefined if one is above 31
 */
export function transformFactors(size: number): number[] | undefined {
  const factors: number[] = [];
  let left = size;
  for (const factor of [4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, MAX_FACTOR]) {
    while (left % factor === 0) {
      factors.push(factor);
      left /= factor;
    }
  }
  return left === 1 ? factors : undefined;
}

/**
 * Discrete Fourier transform of a fixed size, in double precision, by Stockham's method: each factor of the size is one
 * pass from one pair of arrays to the other, without a reordering.
 */
export class FourierTransform {
  readonly #factors: readonly number[];
  readonly #cos: Float64Array;
  readonly #sin: Float64Array;
  #real: Float64Array;
  #imaginary: Float64Array;
  #nextReal: Float64Array;
  #nextImaginary: Float64Array;

  /** @param size product of primes up to 31 */
  constructor(readonly size: number) {
    const factors = transformFactors(size);
    if (factors === undefined)
      throw new RangeError(`expected a product of primes up to ${MAX_FACTOR}, got ${size}`);
    this.#factors = factors;
    this.#cos = Float64Array.from({ length: size }, (_, i) => Math.cos((2 * Math.PI * i) / size));
    this.#sin = Float64Array.from({ length: size }, (_, i) => -Math.sin((2 * Math.PI * i) / size));
    this.#real = new Float64Array(size);
    this.#imaginary = new Float64Array(size);
    this.#nextReal = new Float64Array(size);
    this.#nextImaginary = new Float64Array(size);
  }

  /** Input, and after `transform` the result: the arrays may change with each call. */
  get real(): Float64Array {
    return this.#real;
  }

  get imaginary(): Float64Array {
    return this.#imaginary;
  }

  transform(): void {
    // Before each pass there are `groups` interleaved signals of `length` values.
    let length = this.size;
    let groups = 1;
    for (const factor of this.#factors) {
      length /= factor;
      if (factor === 4) this.#passOf4(length, groups);
      else this.#pass(factor, length, groups);
      groups *= factor;
      [this.#real, this.#nextReal] = [this.#nextReal, this.#real];
      [this.#imaginary, this.#nextImaginary] = [this.#nextImaginary, this.#imaginary];
    }
  }

  /** Turns signals of `factor * length` values into `factor` signals of `length` values each. */
  #pass(factor: number, length: number, groups: number): void {
    const { size } = this;
    const [cos, sin, real, imaginary] = [this.#cos, this.#sin, this.#real, this.#imaginary];
    const [nextReal, nextImaginary] = [this.#nextReal, this.#nextImaginary];
    for (let p = 0; p < length; p++) {
      for (let k = 0; k < factor; k++) {
        // exp(-2 pi i (k r / factor + p k / (factor length))) for the r-th value.
        const turn = p * k * groups;
        const step = (k * size) / factor;
        for (let group = 0; group < groups; group++) {
          let sumReal = 0;
          let sumImaginary = 0;
          let angle = turn;
          for (let r = 0; r < factor; r++) {
            const from = group + groups * (p + length * r);
            const x = real[from]!;
            const y = imaginary[from]!;
            const c = cos[angle]!;
            const s = sin[angle]!;
            sumReal += x * c - y * s;
            sumImaginary += x * s + y * c;
            angle += step;
            if (angle >= size) angle -= size;
          }
          const to = group + groups * (factor * p + k);
          nextReal[to] = sumReal;
          nextImaginary[to] = sumImaginary;
        }
      }
    }
  }

  #passOf4(length: number, groups: number): void {
    const [cos, sin, real, imaginary] = [this.#cos, this.#sin, this.#real, this.#imaginary];
    const [nextReal, nextImaginary] = [this.#nextReal, this.#nextImaginary];
    const step = groups * length;
    for (let p = 0; p < length; p++) {
      const angle = p * groups;
      const c1 = cos[angle]!;
      const s1 = sin[angle]!;
      const c2 = cos[2 * angle]!;
      const s2 = sin[2 * angle]!;
      const c3 = cos[3 * angle]!;
      const s3 = sin[3 * angle]!;
      for (let group = 0; group < groups; group++) {
        const i = group + groups * p;
        const evenReal = real[i]! + real[i + 2 * step]!;
        const evenImaginary = imaginary[i]! + imaginary[i + 2 * step]!;
        const evenReal2 = real[i]! - real[i + 2 * step]!;
        const evenImaginary2 = imaginary[i]! - imaginary[i + 2 * step]!;
        const oddReal = real[i + step]! + real[i + 3 * step]!;
        const oddImaginary = imaginary[i + step]! + imaginary[i + 3 * step]!;
        // The difference of the odd values, turned by -90 degrees.
        const oddReal2 = imaginary[i + step]! - imaginary[i + 3 * step]!;
        const oddImaginary2 = real[i + 3 * step]! - real[i + step]!;
        const to = group + groups * 4 * p;
        nextReal[to] = evenReal + oddReal;
        nextImaginary[to] = evenImaginary + oddImaginary;
        const x1 = evenReal2 + oddReal2;
        const y1 = evenImaginary2 + oddImaginary2;
        nextReal[to + groups] = x1 * c1 - y1 * s1;
        nextImaginary[to + groups] = x1 * s1 + y1 * c1;
        const x2 = evenReal - oddReal;
        const y2 = evenImaginary - oddImaginary;
        nextReal[to + 2 * groups] = x2 * c2 - y2 * s2;
        nextImaginary[to + 2 * groups] = x2 * s2 + y2 * c2;
        const x3 = evenReal2 - oddReal2;
        const y3 = evenImaginary2 - oddImaginary2;
        nextReal[to + 3 * groups] = x3 * c3 - y3 * s3;
        nextImaginary[to + 3 * groups] = x3 * s3 + y3 * c3;
      }
    }
  }
}
