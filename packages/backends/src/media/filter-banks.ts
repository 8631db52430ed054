import { FILTER_BANKS_MODULE } from "./filter-banks-module.js";
import { unitCircle } from "./fourier-transform.js";

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

/** Least energy before the logarithm: the step of FP32 above 1. */
const LEAST = 2 ** -23;

/** The filter banks of a frame of silence. */
export const SILENT_BAND = Math.fround(Math.log(LEAST));

/** Triangles over the bins, one after the other, in pairs of bins: each weight stands twice, for two frames. */
interface Triangles {
  /** First bin of each. */
  readonly first: Int32Array;
  /** Pairs of bins of each. */
  readonly pairs: Int32Array;
  readonly weights: Float32Array;
}

/** Frames that are computed by one call. */
const BLOCK = 128;

/** The part of WebAssembly that is used here. TypeScript has its types among those of browsers. */
interface WebAssemblyApi {
  readonly Memory: new (size: {
    readonly initial: number;
  }) => { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  ) => {
    readonly exports: { readonly compute: Compute; readonly __heap_base: { readonly value: number } };
  };
}

type Compute = (banks: number, signal: number, frames: number, target: number) => void;

const { Memory, Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi })
  .WebAssembly;

let compiled: object | undefined;

/**
 * Log mel filter banks as Kaldi computes them without dither: frames that lie inside of the signal (`snip_edges`),
 * without their mean, with pre-emphasis of 0.97 and Povey's window; the power spectrum in triangles on the mel scale;
 * the natural logarithm.
 *
 * Each frame is computed by itself, so frames of a stream equal those of the whole signal bit for bit. WebAssembly does
 * it in a fifth of the time of JavaScript: it computes two frames at a time, and checks no bounds.
 */
export class FilterBanks {
  readonly #compute: Compute;
  readonly #banks: number;
  readonly #signal: Float32Array;
  readonly #target: Float32Array;

  constructor(private readonly settings: FilterBankSettings) {
    const { frameLength, hopLength, sampleRate, mels, fMin, fMax } = settings;
    const size = transformSize(frameLength);
    const half = size / 2;
    const window = Float64Array.from(
      { length: frameLength },
      (_, i) => (SCALE / 2) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (frameLength - 1))) ** 0.85,
    );
    const { first, pairs, weights } = triangles(sampleRate, size, mels, fMin, fMax);
    const tables = [window, twiddles(half), unitCircle(size, half), first, pairs, weights];
    const samples = (BLOCK - 1) * hopLength + frameLength;
    // The values before and after a pass of the transform, and the powers, of two frames.
    const working = [4 * half, 4 * half, half + 1].map((count) => new Float64Array(count));
    const memory = new ModuleMemory();
    const places = [...tables, ...working].map((table) => memory.place(table));
    // struct banks in filter-banks.c
    this.#banks = memory.place(Int32Array.of(frameLength, hopLength, half, mels, ...places));
    const [signal, target] = [samples, BLOCK * mels].map((count) => memory.place(new Float32Array(count)));
    this.#signal = new Float32Array(memory.buffer, signal, samples);
    this.#target = new Float32Array(memory.buffer, target, BLOCK * mels);
    this.#compute = memory.compute;
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
    const { hopLength, frameLength, mels } = this.settings;
    for (let frame = 0; frame < frames; frame += BLOCK) {
      const count = Math.min(BLOCK, frames - frame);
      const start = frame * hopLength;
      this.#signal.set(signal.subarray(start, start + (count - 1) * hopLength + frameLength));
      this.#compute(this.#banks, this.#signal.byteOffset, count, this.#target.byteOffset);
      target.set(this.#target.subarray(0, count * mels), offset + frame * mels);
    }
  }
}

/** The memory of an instance of the module, whose tables lie one after the other. */
class ModuleMemory {
  readonly compute: Compute;
  readonly #memory = new Memory({ initial: 1 });
  #end: number;

  constructor() {
    compiled ??= new Module(Buffer.from(FILTER_BANKS_MODULE, "base64"));
    const { exports } = new Instance(compiled, { env: { memory: this.#memory } });
    this.compute = exports.compute;
    this.#end = exports.__heap_base.value;
  }

  /** The memory; another one once a table is placed. */
  get buffer(): ArrayBuffer {
    return this.#memory.buffer;
  }

  /** Copies a table, and returns its address. */
  place(table: Float64Array | Float32Array | Int32Array): number {
    const start = Math.ceil(this.#end / 16) * 16;
    this.#end = start + table.byteLength;
    const missing = this.#end - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / 65_536));
    const bytes = new Uint8Array(table.buffer, table.byteOffset, table.byteLength);
    new Uint8Array(this.#memory.buffer, start).set(bytes);
    return start;
  }
}

/** Factors of the results of each pass of 4, in the order of their use. The first results of a pass have none. */
function twiddles(size: number): Float64Array {
  const turns = unitCircle(size, size);
  const chosen: number[] = [];
  for (let length = size, groups = 1; length >= 4; groups *= 4) {
    length /= 4;
    for (let p = 1; p < length; p++) {
      for (const k of [1, 2, 3]) chosen.push(turns[2 * p * k * groups]!, turns[2 * p * k * groups + 1]!);
    }
  }
  return Float64Array.from(chosen);
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
  const pairs = Int32Array.from(all, (band, i) =>
    Math.ceil((1 + band.findLastIndex((weight) => weight > 0) - first[i]!) / 2),
  );
  const weights = all.flatMap((band, i) =>
    Array.from({ length: 4 * pairs[i]! }, (_, at) => band[first[i]! + (at >> 1)] ?? 0),
  );
  return { first, pairs, weights: Float32Array.from(weights) };
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
