interface SpectrogramSettings {
  readonly nFft: number;
  /** Samples of the periodic Hann window, in the middle of each frame. */
  readonly windowLength: number;
  readonly hopLength: number;
  /** True if the middle of frame i is sample i * hopLength, with the signal mirrored at both ends. */
  readonly center: boolean;
  /** Exponent of the magnitudes: 1, or 2 for powers. */
  readonly power: 1 | 2;
  readonly filters: readonly MelFilter[];
}

/** Sums of the magnitudes of short pieces of a signal, in bands of frequencies. */
export class MelSpectrogram {
  readonly #fourier: FourierTransform;
  readonly #window: Float64Array;
  readonly #powers: readonly [Float64Array, Float64Array];

  constructor(private readonly settings: SpectrogramSettings) {
    const { nFft, windowLength } = settings;
    this.#fourier = new FourierTransform(nFft);
    this.#window = new Float64Array(nFft);
    const start = Math.floor((nFft - windowLength) / 2);
    for (let i = 0; i < windowLength; i++) {
      this.#window[start + i] = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / windowLength);
    }
    const bins = Math.floor(nFft / 2) + 1;
    this.#powers = [new Float64Array(bins), new Float64Array(bins)];
  }

  framesOf(samples: number): number {
    const { nFft, hopLength, center } = this.settings;
    const whole = center ? samples + 2 * Math.floor(nFft / 2) : samples;
    return whole < nFft ? 0 : 1 + Math.floor((whole - nFft) / hopLength);
  }

  /**
   * Computes the bands of the first frames of a signal.
   *
   * @param target gets the band m of frame i at `m * frames + i`
   */
  compute(signal: Float32Array, frames: number, target: Float64Array): void {
    const { filters } = this.settings;
    // Two frames at a time: one is the real part, one the imaginary part.
    for (let frame = 0; frame < frames; frame += 2) {
      this.#transform(signal, frame, frame + 1 < frames);
      for (let i = 0; i < 2 && frame + i < frames; i++) {
        const powers = this.#powers[i as 0 | 1];
        for (let mel = 0; mel < filters.length; mel++) {
          const { first, weights } = filters[mel]!;
          let sum = 0;
          for (let j = 0; j < weights.length; j++) sum += weights[j]! * powers[first + j]!;
          target[mel * frames + frame + i] = sum;
        }
      }
    }
  }

  #transform(signal: Float32Array, frame: number, hasSecond: boolean): void {
    const { nFft, hopLength, center, power } = this.settings;
    const fourier = this.#fourier;
    const start = frame * hopLength - (center ? Math.floor(nFft / 2) : 0);
    fill(fourier.real, this.#window, signal, start);
    if (hasSecond) fill(fourier.imaginary, this.#window, signal, start + hopLength);
    else fourier.imaginary.fill(0);
    fourier.transform();
    const { real, imaginary } = fourier;
    const [first, second] = this.#powers;
    for (let bin = 0; bin < first.length; bin++) {
      const mirrored = bin === 0 ? 0 : nFft - bin;
      const a = real[bin]!;
      const b = imaginary[bin]!;
      const c = real[mirrored]!;
      const d = imaginary[mirrored]!;
      const one = ((a + c) ** 2 + (b - d) ** 2) / 4;
      const two = ((b + d) ** 2 + (a - c) ** 2) / 4;
      first[bin] = power === 2 ? one : Math.sqrt(one);
      second[bin] = power === 2 ? two : Math.sqrt(two);
    }
  }
}

/** Fills a frame with a piece of the signal, mirrored at its ends without repeating the outermost samples. */
function fill(frame: Float64Array, window: Float64Array, signal: Float32Array, start: number): void {
  const last = signal.length - 1;
  for (let i = 0; i < frame.length; i++) {
    let at = start + i;
    // A short signal is mirrored several times.
    while (last > 0 && (at < 0 || at > last)) at = at < 0 ? -at : 2 * last - at;
    frame[i] = window[i]! * (signal[last > 0 ? at : 0] ?? 0);
  }
}

/** Definition of the mel scale: Slaney's, linear below 1 kHz, or HTK's, logarithmic everywhere. */
export type MelScale = "slaney" | "htk";

/** One triangular filter: its weights of the bins from `first` on. */
interface MelFilter {
  readonly first: number;
  readonly weights: Float64Array;
}

/**
 * Triangular filters whose corners are evenly spaced on the mel scale, as `librosa.filters.mel` defines them.
 *
 * @param isAreaOne true to divide each filter by half its width in Hz (`norm="slaney"`), false for peaks of 1
 */
export function melFilters(
  sampleRate: number,
  nFft: number,
  mels: number,
  fMin: number,
  fMax: number,
  scale: MelScale,
  isAreaOne: boolean,
): readonly MelFilter[] {
  const [low, high] = [toMel(fMin, scale), toMel(fMax, scale)];
  const corners = Float64Array.from({ length: mels + 2 }, (_, i) =>
    toHertz(low + ((high - low) * i) / (mels + 1), scale),
  );
  const bins = nFft / 2 + 1;
  return Array.from({ length: mels }, (_, mel) => {
    const [from, peak, to] = [corners[mel]!, corners[mel + 1]!, corners[mel + 2]!];
    const size = isAreaOne ? 2 / (to - from) : 1;
    const all = Array.from({ length: Math.floor(bins) }, (_, bin) => {
      const frequency = (bin * sampleRate) / nFft;
      return size * Math.max(0, Math.min((frequency - from) / (peak - from), (to - frequency) / (to - peak)));
    });
    const first = all.findIndex((weight) => weight > 0);
    const last = all.findLastIndex((weight) => weight > 0);
    return first < 0
      ? { first: 0, weights: new Float64Array() }
      : { first, weights: Float64Array.from(all.slice(first, last + 1)) };
  });
}

/** Slaney's scale: 15 mels in 1 kHz, then 27 in each factor of 6.4. */
const LINEAR_HERTZ = 200 / 3;
const CORNER_HERTZ = 1000;
const CORNER_MEL = CORNER_HERTZ / LINEAR_HERTZ;
const LOG_STEP = Math.log(6.4) / 27;

function toMel(hertz: number, scale: MelScale): number {
  if (scale === "htk") return 2595 * Math.log10(1 + hertz / 700);
  return hertz < CORNER_HERTZ ? hertz / LINEAR_HERTZ : CORNER_MEL + Math.log(hertz / CORNER_HERTZ) / LOG_STEP;
}

function toHertz(mel: number, scale: MelScale): number {
  if (scale === "htk") return 700 * (10 ** (mel / 2595) - 1);
  return mel < CORNER_MEL ? mel * LINEAR_HERTZ : CORNER_HERTZ * Math.exp(LOG_STEP * (mel - CORNER_MEL));
}

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
  /** Input, and after `transform` the result: the arrays may change with each call. */
  real: Float64Array;
  imaginary: Float64Array;
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
    this.real = new Float64Array(size);
    this.imaginary = new Float64Array(size);
    this.#nextReal = new Float64Array(size);
    this.#nextImaginary = new Float64Array(size);
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
      [this.real, this.#nextReal] = [this.#nextReal, this.real];
      [this.imaginary, this.#nextImaginary] = [this.#nextImaginary, this.imaginary];
    }
  }

  /** Turns signals of `factor * length` values into `factor` signals of `length` values each. */
  #pass(factor: number, length: number, groups: number): void {
    const { size } = this;
    const [cos, sin, real, imaginary] = [this.#cos, this.#sin, this.real, this.imaginary];
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
    const [cos, sin, real, imaginary] = [this.#cos, this.#sin, this.real, this.imaginary];
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
