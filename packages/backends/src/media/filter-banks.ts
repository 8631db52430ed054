import { FourierTransform } from "./mel-spectrogram.js";

interface FilterBankSettings {
  readonly sampleRate: number;
  /** Samples of a frame: at least 2. The Fourier transform has the next power of two. */
  readonly frameLength: number;
  readonly hopLength: number;
  readonly mels: number;
  readonly fMin: number;
  readonly fMax: number;
}

/** Kaldi works on the range of 16-bit integers. */
const SCALE = 2 ** 15;

const PRE_EMPHASIS = 0.97;

/** Least energy before the logarithm: the step of FP32 above 1. */
const LEAST = 2 ** -23;

/** The filter banks of a frame of silence. */
export const SILENT_BAND = Math.fround(Math.log(LEAST));

/** One triangle: its weights of the bins from `first` on. */
interface Triangle {
  readonly first: number;
  readonly weights: Float64Array;
}

/**
 * Log mel filter banks as Kaldi computes them without dither: frames that lie inside of the signal (`snip_edges`),
 * without their mean, with pre-emphasis of 0.97 and Povey's window; the power spectrum in triangles on the mel scale;
 * the natural logarithm.
 *
 * Each frame is computed by itself, so frames of a stream equal those of the whole signal bit for bit.
 */
export class FilterBanks {
  readonly #window: Float64Array;
  readonly #frame: Float64Array;
  readonly #fourier: FourierTransform;
  /** cos and sin of the angles that join the halves of the spectrum. */
  readonly #turns: readonly [Float64Array, Float64Array];
  readonly #powers: Float64Array;
  readonly #triangles: readonly Triangle[];

  constructor(private readonly settings: FilterBankSettings) {
    const { frameLength, sampleRate, mels, fMin, fMax } = settings;
    const size = transformSize(frameLength);
    this.#window = Float64Array.from(
      { length: frameLength },
      (_, i) => (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (frameLength - 1))) ** 0.85,
    );
    this.#frame = new Float64Array(frameLength);
    this.#fourier = new FourierTransform(size / 2);
    const angle = (i: number) => (-2 * Math.PI * i) / size;
    this.#turns = [
      Float64Array.from({ length: size / 2 }, (_, i) => Math.cos(angle(i))),
      Float64Array.from({ length: size / 2 }, (_, i) => Math.sin(angle(i))),
    ];
    this.#powers = new Float64Array(size / 2);
    this.#triangles = triangles(sampleRate, size, mels, fMin, fMax);
  }

  /** Number of frames that lie inside of a signal. */
  framesOf(samples: number): number {
    const { frameLength, hopLength } = this.settings;
    return samples < frameLength ? 0 : 1 + Math.floor((samples - frameLength) / hopLength);
  }

  /**
   * Computes the bands of the first frames of a signal.
   *
   * @param signal samples from -1 to 1
   * @param target gets the band m of frame i at `offset + i * mels + m`
   */
  compute(signal: Float32Array, frames: number, target: Float32Array, offset = 0): void {
    const { hopLength, mels } = this.settings;
    const [powers, bands] = [this.#powers, this.#triangles];
    for (let frame = 0; frame < frames; frame++) {
      this.#fill(signal, frame * hopLength);
      this.#transform();
      const at = offset + frame * mels;
      for (let mel = 0; mel < mels; mel++) {
        const { first, weights } = bands[mel]!;
        let sum = 0;
        for (let j = 0; j < weights.length; j++) sum += weights[j]! * powers[first + j]!;
        target[at + mel] = sum > LEAST ? Math.log(sum) : SILENT_BAND;
      }
    }
  }

  /** Fills the transform with a frame: even samples are the real part, odd samples the imaginary part. */
  #fill(signal: Float32Array, start: number): void {
    const [frame, window, { real, imaginary }] = [this.#frame, this.#window, this.#fourier];
    const { length } = frame;
    let sum = 0;
    for (let i = 0; i < length; i++) {
      const sample = SCALE * signal[start + i]!;
      frame[i] = sample;
      sum += sample;
    }
    const mean = sum / length;
    let before = frame[0]! - mean;
    for (let i = 0; i < length; i++) {
      const sample = frame[i]! - mean;
      const value = (sample - PRE_EMPHASIS * before) * window[i]!;
      if ((i & 1) === 0) real[i >> 1] = value;
      else imaginary[i >> 1] = value;
      before = sample;
    }
    // The transform has moved its arrays, so what is behind the frame is not zero any more.
    real.fill(0, (length + 1) >> 1);
    imaginary.fill(0, length >> 1);
  }

  /** Computes the power of each bin below half the rate, from a transform of half the size. */
  #transform(): void {
    const fourier = this.#fourier;
    fourier.transform();
    const { real, imaginary, size } = fourier;
    const [cos, sin] = this.#turns;
    const powers = this.#powers;
    for (let bin = 0; bin < size; bin++) {
      const other = bin === 0 ? 0 : size - bin;
      const evenReal = (real[bin]! + real[other]!) / 2;
      const evenImaginary = (imaginary[bin]! - imaginary[other]!) / 2;
      const oddReal = (imaginary[bin]! + imaginary[other]!) / 2;
      const oddImaginary = (real[other]! - real[bin]!) / 2;
      const [c, s] = [cos[bin]!, sin[bin]!];
      const a = evenReal + oddReal * c - oddImaginary * s;
      const b = evenImaginary + oddReal * s + oddImaginary * c;
      powers[bin] = a * a + b * b;
    }
  }
}

/** Size of the Fourier transform of a frame: the next power of two. */
function transformSize(frameLength: number): number {
  return 2 ** Math.ceil(Math.log2(frameLength));
}

/**
 * Triangles whose corners are evenly spaced in mel, and whose sides are straight in mel. Each step rounds to FP32, as
 * in torchaudio: in narrow triangles the rounding shows.
 */
function triangles(
  rate: number,
  size: number,
  mels: number,
  fMin: number,
  fMax: number,
): readonly Triangle[] {
  const f = Math.fround;
  const mel = (hertz: number) => 1127 * Math.log(1 + hertz / 700);
  const low = f(mel(fMin));
  const step = f((mel(fMax) - mel(fMin)) / (mels + 1));
  const corner = (i: number) => f(low + f(f(i) * step));
  const bins = Float64Array.from({ length: size / 2 }, (_, bin) => {
    const hertz = f(f(rate / size) * bin);
    return f(f(1127) * f(Math.log(f(1 + f(hertz / f(700))))));
  });
  return Array.from({ length: mels }, (_, i) => {
    const [left, centre, right] = [corner(i), corner(i + 1), corner(i + 2)];
    const all = Float64Array.from(bins, (at) => {
      const rise = f(f(at - left) / f(centre - left));
      const fall = f(f(right - at) / f(right - centre));
      return Math.max(0, Math.min(rise, fall));
    });
    const first = all.findIndex((weight) => weight > 0);
    const last = all.findLastIndex((weight) => weight > 0);
    return {
      first: Math.max(0, first),
      weights: first < 0 ? new Float64Array() : all.slice(first, last + 1),
    };
  });
}

/** How a stream divides its frames into tensors. */
interface StreamSettings {
  /** The frames of a request are a multiple of this number, except for padding. */
  readonly frameMultiple: number;
  /** Silent frames after the end. */
  readonly flushFrames: number;
}

/**
 * Takes the next samples of a stream.
 *
 * @param carried samples that no frame is over with, of the request before
 * @param isLast true to end the stream with silent frames
 * @returns the frames that are now complete, and the samples to carry on
 */
export function nextFrames(
  banks: FilterBanks,
  { hopLength, mels, frameMultiple, flushFrames }: FilterBankSettings & StreamSettings,
  carried: Float32Array,
  samples: Float32Array,
  isLast: boolean,
): { readonly frames: number; readonly values: Float32Array; readonly carried: Float32Array } {
  const signal = new Float32Array(carried.length + samples.length);
  signal.set(carried);
  signal.set(samples, carried.length);
  const complete = banks.framesOf(signal.length);
  const count = isLast ? complete + flushFrames : complete;
  const frames = count - (count % frameMultiple);
  const heard = Math.min(complete, frames);
  const values = new Float32Array(frames * mels).fill(SILENT_BAND, heard * mels);
  banks.compute(signal, heard, values);
  return { frames, values, carried: isLast ? new Float32Array() : signal.subarray(heard * hopLength) };
}
