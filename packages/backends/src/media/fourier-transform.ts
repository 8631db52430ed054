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
 * pass from one array to the other, without a reordering.
 */
export class FourierTransform {
  readonly #factors: readonly number[];
  /** cos and sin of each multiple of a turn divided by the size, one after the other. */
  readonly #turns: Float64Array;
  /** For a pass of 4, the factors that its results are multiplied with, in the order of their use. */
  readonly #twiddles: readonly Float64Array[];
  /**
   * Input, and after `transform` the result: the real and the imaginary part of each value, one after the other. The
   * array may be another one after each call.
   */
  values: Float64Array;
  #next: Float64Array;

  /** @param size product of primes up to 31 */
  constructor(readonly size: number) {
    const factors = transformFactors(size);
    if (factors === undefined)
      throw new RangeError(`expected a product of primes up to ${MAX_FACTOR}, got ${size}`);
    this.#factors = factors;
    this.#turns = unitCircle(size, size);
    this.#twiddles = twiddles(this.#turns, size, factors);
    this.values = new Float64Array(2 * size);
    this.#next = new Float64Array(2 * size);
  }

  transform(): void {
    // Before each pass there are `groups` interleaved signals of `length` values.
    let length = this.size;
    let groups = 1;
    for (let i = 0; i < this.#factors.length; i++) {
      const factor = this.#factors[i]!;
      length /= factor;
      if (factor === 4) passOf4(this.values, this.#next, this.#twiddles[i]!, length, groups);
      else this.#pass(factor, length, groups);
      groups *= factor;
      const result = this.#next;
      this.#next = this.values;
      this.values = result;
    }
  }

  /** Turns signals of `factor * length` values into `factor` signals of `length` values each. */
  #pass(factor: number, length: number, groups: number): void {
    const { size, values } = this;
    const turns = this.#turns;
    const next = this.#next;
    for (let p = 0; p < length; p++) {
      for (let k = 0; k < factor; k++) {
        // exp(-2 pi i (k r / factor + p k / (factor length))) for the r-th value.
        const turn = p * k * groups;
        const step = (k * size) / factor;
        for (let group = 0; group < groups; group++) {
          let real = 0;
          let imaginary = 0;
          let angle = turn;
          for (let r = 0; r < factor; r++) {
            const from = 2 * (group + groups * (p + length * r));
            const x = values[from]!;
            const y = values[from + 1]!;
            const c = turns[2 * angle]!;
            const s = turns[2 * angle + 1]!;
            real += x * c - y * s;
            imaginary += x * s + y * c;
            angle += step;
            if (angle >= size) angle -= size;
          }
          const to = 2 * (group + groups * (factor * p + k));
          next[to] = real;
          next[to + 1] = imaginary;
        }
      }
    }
  }
}

/** The first turns clockwise by a turn divided by the size: cos and sin of each. */
export function unitCircle(size: number, count: number): Float64Array {
  const turns = new Float64Array(2 * count);
  for (let i = 0; i < count; i++) {
    const angle = (-2 * Math.PI * i) / size;
    turns[2 * i] = Math.cos(angle);
    turns[2 * i + 1] = Math.sin(angle);
  }
  return turns;
}

function twiddles(turns: Float64Array, size: number, factors: readonly number[]): Float64Array[] {
  let length = size;
  let groups = 1;
  return factors.map((factor) => {
    length /= factor;
    const table = new Float64Array(factor === 4 ? 6 * length : 0);
    for (let i = 0; i < table.length; i += 2) {
      const [p, k] = [Math.floor(i / 6), 1 + ((i / 2) % 3)];
      table.set(turns.subarray(2 * p * k * groups, 2 * p * k * groups + 2), i);
    }
    groups *= factor;
    return table;
  });
}

/** A pass of the factor 4, which needs multiplications for its results alone. */
function passOf4(
  values: Float64Array,
  next: Float64Array,
  table: Float64Array,
  length: number,
  groups: number,
): void {
  const step = 2 * groups * length;
  const apart = 2 * groups;
  let i = 0;
  let to = 0;
  for (let p = 0, at = 0; p < length; p++, at += 6) {
    const c1 = table[at]!;
    const s1 = table[at + 1]!;
    const c2 = table[at + 2]!;
    const s2 = table[at + 3]!;
    const c3 = table[at + 4]!;
    const s3 = table[at + 5]!;
    for (let group = 0; group < groups; group++) {
      const a = values[i]!;
      const b = values[i + 1]!;
      const c = values[i + step]!;
      const d = values[i + step + 1]!;
      const e = values[i + 2 * step]!;
      const f = values[i + 2 * step + 1]!;
      const g = values[i + 3 * step]!;
      const h = values[i + 3 * step + 1]!;
      const evenReal = a + e;
      const evenImaginary = b + f;
      const evenReal2 = a - e;
      const evenImaginary2 = b - f;
      const oddReal = c + g;
      const oddImaginary = d + h;
      // The difference of the odd values, turned by -90 degrees.
      const oddReal2 = d - h;
      const oddImaginary2 = g - c;
      next[to] = evenReal + oddReal;
      next[to + 1] = evenImaginary + oddImaginary;
      const x1 = evenReal2 + oddReal2;
      const y1 = evenImaginary2 + oddImaginary2;
      next[to + apart] = x1 * c1 - y1 * s1;
      next[to + apart + 1] = x1 * s1 + y1 * c1;
      const x2 = evenReal - oddReal;
      const y2 = evenImaginary - oddImaginary;
      next[to + 2 * apart] = x2 * c2 - y2 * s2;
      next[to + 2 * apart + 1] = x2 * s2 + y2 * c2;
      const x3 = evenReal2 - oddReal2;
      const y3 = evenImaginary2 - oddImaginary2;
      next[to + 3 * apart] = x3 * c3 - y3 * s3;
      next[to + 3 * apart + 1] = x3 * s3 + y3 * c3;
      i += 2;
      to += 2;
    }
    to += 3 * apart;
  }
}
