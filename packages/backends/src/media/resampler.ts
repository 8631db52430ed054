/** Zero crossings of the sinc on each side of its middle: 128 samples take part in each new one. */
const CROSSINGS = 64;

/** Shape of the Kaiser window: tones beyond the new Nyquist frequency are 100 dB down. */
const BETA = 10.5;

/** Cut-off, as a part of the lower Nyquist frequency: the middle of the slope. */
const CUT_OFF = 0.95;

/** Largest number of phases with weights of their own. Others are interpolated linearly between two of them. */
const MAX_PHASES = 1024;

/** Largest number of weights: 4 MB, whatever rate a file claims. A wider sinc is smoother, so it needs fewer phases. */
const MAX_WEIGHTS = 2 ** 20;

/**
 * Resamples by a windowed sinc. A signal up to 0.9 of the lower Nyquist frequency keeps its amplitude to 1e-4. Outside,
 * the signal counts as silence.
 *
 * ```
 *   in    |     |     |     |     |        a new sample at t = i * from / to is the sum of the old samples around it,
 *   out   |        |        |        |     weighted by the sinc whose middle is at t
 *         t=0      t=1.5    t=3
 * ```
 *
 * The fraction of t takes `to / gcd(from, to)` values, so the weights of each such phase are computed once.
 */
export class Resampler {
  readonly #up: number;
  readonly #down: number;
  /** Number of weights of a new sample. */
  readonly #taps: number;
  readonly #phases: number;
  readonly #weights: Float32Array;

  /**
   * @param from samples in a second of the source
   * @param to samples in a second of the result
   */
  constructor(from: number, to: number) {
    const divisor = gcd(from, to);
    this.#up = to / divisor;
    this.#down = from / divisor;
    // When the rate goes down, the cut-off is lower, and the sinc is wider by the same factor.
    const stretch = Math.max(1, from / to);
    const half = Math.ceil(CROSSINGS * stretch);
    this.#taps = 2 * half;
    this.#phases = Math.min(this.#up, MAX_PHASES, Math.floor(MAX_WEIGHTS / this.#taps));
    // One more phase, the first of the next sample, for the interpolation up to it.
    this.#weights = new Float32Array((this.#phases + 1) * this.#taps);
    for (let phase = 0; phase <= this.#phases; phase++) {
      this.#fill(phase, half, CUT_OFF / stretch);
    }
  }

  /** Number of new samples for a number of old samples. */
  lengthOf(samples: number): number {
    return Math.ceil((samples * this.#up) / this.#down);
  }

  /** Resamples a whole signal. */
  resample(source: Float32Array): Float32Array {
    const target = new Float32Array(this.lengthOf(source.length));
    const half = this.#taps / 2;
    const isExact = this.#phases === this.#up;
    for (let i = 0; i < target.length; i++) {
      const at = i * this.#down;
      const whole = Math.floor(at / this.#up);
      const phase = ((at - whole * this.#up) * this.#phases) / this.#up;
      const low = Math.floor(phase);
      const first = whole - half + 1;
      const sum = this.#sum(source, first, low);
      target[i] =
        isExact || phase === low ? sum : sum + (phase - low) * (this.#sum(source, first, low + 1) - sum);
    }
    return target;
  }

  /** Sum of old samples from `first` on, with the weights of a phase. */
  #sum(source: Float32Array, first: number, phase: number): number {
    const weights = this.#weights;
    const from = Math.max(0, -first);
    const to = Math.min(this.#taps, source.length - first);
    let sum = 0;
    for (let tap = from, weight = phase * this.#taps + from; tap < to; tap++, weight++) {
      sum += source[first + tap]! * weights[weight]!;
    }
    return sum;
  }

  #fill(phase: number, half: number, cutOff: number): void {
    const start = phase * this.#taps;
    const fraction = phase / this.#phases;
    let sum = 0;
    for (let tap = 0; tap < this.#taps; tap++) {
      const distance = tap - half + 1 - fraction;
      const weight = cutOff * sinc(cutOff * distance) * kaiser(distance / half);
      this.#weights[start + tap] = weight;
      sum += weight;
    }
    // A constant signal stays the same in each phase.
    for (let tap = 0; tap < this.#taps; tap++) this.#weights[start + tap]! /= sum;
  }
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Kaiser window of a distance from -1 to 1; 0 outside. */
function kaiser(distance: number): number {
  const inside = 1 - distance * distance;
  return inside < 0 ? 0 : besselI0(BETA * Math.sqrt(inside)) / SCALE;
}

/** Modified Bessel function of the first kind and order 0, by its series. */
function besselI0(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-17; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

const SCALE = besselI0(BETA);
