import { FourierTransform } from "./fourier.js";
import type { MelFilter } from "./mel-filters.js";

/** Settings of a {@link MelSpectrogram}. */
export interface SpectrogramSettings {
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

  /** Number of frames of a signal. */
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
