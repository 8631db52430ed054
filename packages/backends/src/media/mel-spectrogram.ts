import { FourierTransform } from "./fourier-transform.js";

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
    if (!hasSecond) fourier.values.fill(0);
    fill(fourier.values, 0, this.#window, signal, start);
    if (hasSecond) fill(fourier.values, 1, this.#window, signal, start + hopLength);
    fourier.transform();
    const { values } = fourier;
    const [first, second] = this.#powers;
    for (let bin = 0; bin < first.length; bin++) {
      const mirrored = bin === 0 ? 0 : nFft - bin;
      const a = values[2 * bin]!;
      const b = values[2 * bin + 1]!;
      const c = values[2 * mirrored]!;
      const d = values[2 * mirrored + 1]!;
      const one = ((a + c) ** 2 + (b - d) ** 2) / 4;
      const two = ((b + d) ** 2 + (a - c) ** 2) / 4;
      first[bin] = power === 2 ? one : Math.sqrt(one);
      second[bin] = power === 2 ? two : Math.sqrt(two);
    }
  }
}

/**
 * Fills the real (0) or the imaginary (1) parts of a transform with a piece of the signal, mirrored at its ends without
 * repeating the outermost samples.
 */
function fill(
  values: Float64Array,
  part: 0 | 1,
  window: Float64Array,
  signal: Float32Array,
  start: number,
): void {
  const last = signal.length - 1;
  for (let i = 0; i < window.length; i++) {
    let at = start + i;
    // A short signal is mirrored several times.
    while (last > 0 && (at < 0 || at > last)) at = at < 0 ? -at : 2 * last - at;
    values[2 * i + part] = window[i]! * (signal[last > 0 ? at : 0] ?? 0);
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
