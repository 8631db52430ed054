import { FourierTransform, unitCircle } from "./fourier-transform.js";
import { Logarithms } from "./logarithms.js";

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

/** Triangles over the bins, one after the other: the bins that each has weights of, and all weights. */
interface Triangles {
  readonly first: Int32Array;
  readonly end: Int32Array;
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
  /** Povey's window, which also brings the samples to Kaldi's range. */
  readonly #window: Float64Array;
  readonly #fourier: FourierTransform;
  /** cos and sin of the angles that join the halves of the spectrum. */
  readonly #turns: Float64Array;
  readonly #powers: Float64Array;
  readonly #triangles: Triangles;
  readonly #bands: Logarithms;

  constructor(private readonly settings: FilterBankSettings) {
    const { frameLength, sampleRate, mels, fMin, fMax } = settings;
    const size = transformSize(frameLength);
    this.#window = Float64Array.from(
      { length: frameLength },
      (_, i) => SCALE * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (frameLength - 1))) ** 0.85,
    );
    this.#fourier = new FourierTransform(size / 2);
    this.#turns = unitCircle(size, size / 2);
    this.#powers = new Float64Array(size / 2);
    this.#triangles = triangles(sampleRate, size, mels, fMin, fMax);
    this.#bands = new Logarithms(mels);
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
    for (let frame = 0; frame < frames; frame++) {
      this.#fill(signal, frame * hopLength);
      this.#fourier.transform();
      this.#joinHalves();
      this.#sumBands();
      this.#bands.writeTo(target, offset + frame * mels);
    }
  }

  /**
   * Fills the transform with a frame: even samples are the real part, odd samples the imaginary part. Subtracting the
   * mean and then 0.97 of the sample before leaves 0.03 of the mean to subtract.
   */
  #fill(signal: Float32Array, start: number): void {
    const window = this.#window;
    const { values } = this.#fourier;
    const { length } = window;
    const share = (1 - PRE_EMPHASIS) * meanOf(signal, start, length);
    let before = signal[start]!;
    for (let i = 0; i < length; i++) {
      const sample = signal[start + i]!;
      values[i] = (sample - PRE_EMPHASIS * before - share) * window[i]!;
      before = sample;
    }
    // The transform has moved its arrays, so what is behind the frame is not zero any more.
    values.fill(0, length);
  }

  /** Computes the power of each bin below half the rate, from a transform of half the size: two mirrored bins at a time. */
  #joinHalves(): void {
    const { values, size } = this.#fourier;
    const turns = this.#turns;
    const powers = this.#powers;
    powers[0] = (values[0]! + values[1]!) ** 2;
    if (size === 1) return;
    powers[size / 2] = values[size]! ** 2 + values[size + 1]! ** 2;
    for (let bin = 1; bin < size / 2; bin++) {
      const other = size - bin;
      const a = values[2 * bin]!;
      const b = values[2 * bin + 1]!;
      const c = values[2 * other]!;
      const d = values[2 * other + 1]!;
      const evenReal = 0.5 * (a + c);
      const evenImaginary = 0.5 * (b - d);
      const oddReal = 0.5 * (b + d);
      const oddImaginary = 0.5 * (c - a);
      const cos = turns[2 * bin]!;
      const sin = turns[2 * bin + 1]!;
      const turnedReal = oddReal * cos - oddImaginary * sin;
      const turnedImaginary = oddReal * sin + oddImaginary * cos;
      const real = evenReal + turnedReal;
      const imaginary = evenImaginary + turnedImaginary;
      powers[bin] = real * real + imaginary * imaginary;
      const otherReal = evenReal - turnedReal;
      const otherImaginary = evenImaginary - turnedImaginary;
      powers[other] = otherReal * otherReal + otherImaginary * otherImaginary;
    }
  }

  #sumBands(): void {
    const powers = this.#powers;
    const bands = this.#bands.values;
    const { first, end, weights } = this.#triangles;
    let weight = 0;
    for (let mel = 0; mel < bands.length; mel++) {
      // Two sums at a time, because additions to the same one wait for each other.
      let sum = 0;
      let other = 0;
      const last = end[mel]! - 1;
      let bin = first[mel]!;
      for (; bin < last; bin += 2) {
        sum += weights[weight]! * powers[bin]!;
        other += weights[weight + 1]! * powers[bin + 1]!;
        weight += 2;
      }
      if (bin === last) sum += weights[weight++]! * powers[bin]!;
      bands[mel] = Math.max(LEAST, sum + other);
    }
  }
}

/** The mean of samples. Four sums at a time are faster than one, whose additions wait for each other. */
function meanOf(signal: Float32Array, start: number, length: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const end = start + length;
  let i = start;
  for (; i + 3 < end; i += 4) {
    a += signal[i]!;
    b += signal[i + 1]!;
    c += signal[i + 2]!;
    d += signal[i + 3]!;
  }
  for (; i < end; i++) a += signal[i]!;
  return (a + b + (c + d)) / length;
}

/** Size of the Fourier transform of a frame: the next power of two. */
function transformSize(frameLength: number): number {
  return 2 ** Math.ceil(Math.log2(frameLength));
}

/**
 * Triangles whose corners are evenly spaced in mel, and whose sides are straight in mel. Each step rounds to FP32, as
 * in torchaudio: in narrow triangles the rounding shows.
 */
function triangles(rate: number, size: number, mels: number, fMin: number, fMax: number): Triangles {
  const f = Math.fround;
  const mel = (hertz: number) => 1127 * Math.log(1 + hertz / 700);
  const low = f(mel(fMin));
  const step = f((mel(fMax) - mel(fMin)) / (mels + 1));
  const corner = (i: number) => f(low + f(f(i) * step));
  const bins = Float64Array.from({ length: size / 2 }, (_, bin) => {
    const hertz = f(f(rate / size) * bin);
    return f(f(1127) * f(Math.log(f(1 + f(hertz / f(700))))));
  });
  const all = Array.from({ length: mels }, (_, i) => {
    const [left, centre, right] = [corner(i), corner(i + 1), corner(i + 2)];
    return Float64Array.from(bins, (at) => {
      const rise = f(f(at - left) / f(centre - left));
      const fall = f(f(right - at) / f(right - centre));
      return Math.max(0, Math.min(rise, fall));
    });
  });
  const first = Int32Array.from(all, (band) =>
    Math.max(
      0,
      band.findIndex((weight) => weight > 0),
    ),
  );
  const end = Int32Array.from(all, (band) => 1 + band.findLastIndex((weight) => weight > 0));
  const weights = Float64Array.from(all.flatMap((band, i) => [...band.subarray(first[i], end[i])]));
  return { first, end, weights };
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
