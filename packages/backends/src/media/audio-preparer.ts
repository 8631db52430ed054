import type { ExecutionResult, WorkerBatch, WorkerModel } from "@tritonjs/core/backend";
import type { Tensors } from "@tritonjs/core/internal";
import { splitOutputs } from "@tritonjs/core/internal/worker";
import { Tensor, type TensorSpec, TritonError } from "@tritonjs/protocol";
import type { AudioLog, AudioPlan } from "./audio-options.js";
import { FilterBanks, nextFrames, SILENT_BAND } from "./filter-banks.js";
import { badFile, filesOf, PAST, PRESENT } from "./media-parameters.js";
import { MelSpectrogram, melFilters } from "./mel-spectrogram.js";
import { decodeWav, readWav, type WavFile } from "./wav.js";

/**
 * Makes the tensors of requests from their files or samples. The state of a stream has the samples that belong to
 * frames of later requests.
 */
export class AudioPreparer {
  readonly #reader: WaveformReader;
  readonly #spectrogram: MelSpectrogram | undefined;
  readonly #banks: FilterBanks | undefined;

  constructor(private readonly plan: AudioPlan) {
    this.#reader = new WaveformReader(plan);
    if (plan.features === "mel") this.#spectrogram = spectrogramOf(plan);
    if (plan.features === "fbank") this.#banks = new FilterBanks(plan);
  }

  /**
   * Prepares the tensors of a request.
   *
   * @param hasRows true if tensors have an axis of rows
   * @param isLast true for the last request of a stream
   * @throws TritonError INVALID_ARG for a bad file or bad samples
   */
  prepare(inputs: Tensors, hasRows: boolean, isLast = false): Map<string, Tensor> {
    const { input, inputName, inputLengthsName, outputName, lengths, lengthsName, stream } = this.plan;
    const waveforms =
      input === "file"
        ? this.#reader.read(filesOf(inputs.get(inputName), inputName, hasRows))
        : this.#reader.readSamples(inputs.get(inputName)!, inputs.get(inputLengthsName ?? ""), hasRows);
    if (stream) return this.#continueStream(waveforms, inputs.get(PAST)!, hasRows, isLast);
    const { shape, values } = this.#featuresOf(waveforms);
    const rows = waveforms.files.length;
    const batch = hasRows ? [rows] : [];
    const outputs = new Map([[outputName, Tensor.fromElements("FP32", [...batch, ...shape], values)]]);
    if (lengths) {
      const counts = Int32Array.from(waveforms.lengths, (samples) => this.#unitsOf(samples));
      outputs.set(lengthsName, Tensor.fromElements("INT32", [...batch, 1], counts));
    }
    return outputs;
  }

  /** Frames that are complete with these samples. Requests of a stream have one row. */
  #continueStream({ files, lengths }: Waveforms, past: Tensor, hasRows: boolean, isLast: boolean) {
    const { mels, padFrames, outputName, lengths: hasLengths, lengthsName } = this.plan;
    const samples = files[0]![0]!.subarray(0, lengths[0]);
    // The state begins with one zero, before the samples.
    const carried = (past.elements as Float32Array).subarray(1);
    const next = nextFrames(this.#banks!, this.plan, carried, samples, isLast);
    const frames = Math.max(1, Math.ceil(next.frames / padFrames)) * padFrames;
    const values = new Float32Array(frames * mels).fill(SILENT_BAND, next.values.length);
    values.set(next.values);
    const present = new Float32Array(next.carried.length + 1);
    present.set(next.carried, 1);
    const batch = hasRows ? [1] : [];
    const outputs = new Map([
      [outputName, Tensor.fromElements("FP32", [...batch, frames, mels], values)],
      [PRESENT, Tensor.fromElements("FP32", [...batch, present.length], present)],
    ]);
    const count = Int32Array.of(next.frames);
    if (hasLengths) outputs.set(lengthsName, Tensor.fromElements("INT32", [...batch, 1], count));
    return outputs;
  }

  #featuresOf({ files, lengths }: Waveforms): { shape: number[]; values: Float32Array } {
    const { mono, features, mels } = this.plan;
    const samples = files[0]![0]!.length;
    if (features === "fbank") {
      const count = this.#framesOf(samples);
      const values = new Float32Array(files.length * count * mels);
      for (const [row, [channel]] of files.entries()) {
        this.#banks!.compute(channel!, this.#framesOf(lengths[row]!), values, row * count * mels);
      }
      return { shape: [count, mels], values };
    }
    if (features === "waveform") {
      const all = files.flat();
      return { shape: mono ? [samples] : [files[0]!.length, samples], values: joined(all, samples) };
    }
    const count = this.#framesOf(samples);
    if (features === "frames") {
      const { frameLength } = this.plan;
      const frames = files.map(([channel]) => this.#cut(channel!, count));
      return { shape: [count, frameLength], values: joined(frames, count * frameLength) };
    }
    const spectra = files.map(([channel]) => this.#melsOf(channel!, count));
    return { shape: [mels, count], values: joined(spectra, mels * count) };
  }

  #unitsOf(samples: number): number {
    return this.plan.features === "waveform" ? samples : this.#framesOf(samples);
  }

  /**
   * Number of frames of a signal: at least one. Frames reach over the end of the signal, so that none of it is lost.
   * Kaldi's filter banks are of frames inside of the signal, perhaps none.
   */
  #framesOf(samples: number): number {
    const { features, frameLength, hopLength, log } = this.plan;
    if (features === "fbank") return this.#banks!.framesOf(samples);
    if (features === "frames") return 1 + Math.ceil(Math.max(0, samples - frameLength) / hopLength);
    return Math.max(1, this.#spectrogram!.framesOf(samples) - (log === "whisper" ? 1 : 0));
  }

  #cut(signal: Float32Array, count: number): Float32Array {
    const { frameLength, hopLength } = this.plan;
    const target = new Float32Array(count * frameLength);
    for (let frame = 0; frame < count; frame++) {
      target.set(signal.subarray(frame * hopLength, frame * hopLength + frameLength), frame * frameLength);
    }
    return target;
  }

  #melsOf(signal: Float32Array, count: number): Float32Array {
    const target = new Float64Array(this.plan.mels * count);
    this.#spectrogram!.compute(signal, count, target);
    return scaleMels(target, this.plan.log, this.plan.floor);
  }
}

/** Data that a worker thread gets. */
export interface AudioData {
  readonly plan: AudioPlan;
  readonly hasRows: boolean;
}

/** Entry of worker threads that prepare audio. */
export async function load(data: unknown): Promise<WorkerModel> {
  const { plan, hasRows } = data as AudioData;
  const preparer = new AudioPreparer(plan);
  return {
    ownsOutputs: true,
    execute: async ({ inputs, rows, requests }: WorkerBatch) => {
      const separate: ExecutionResult[] = [];
      // The dims of a model without a batch axis may have an axis of rows.
      const parts = rows.length === 1 ? [inputs] : splitOutputs(inputs, rows);
      for (const [index, own] of parts.entries()) {
        // Cancellations arrive between requests.
        if (index > 0) await new Promise((resolve) => setImmediate(resolve));
        try {
          const isOver = requests[index]?.signal.aborted;
          const isLast = requests[index]?.sequenceEnd;
          separate.push(isOver ? new Map() : preparer.prepare(own, hasRows, isLast));
        } catch (error) {
          separate.push(TritonError.from(error));
        }
      }
      return { separate };
    },
  };
}

/** The tensors of a plan, without the axis of the rows. The state of a stream is among them. */
export function audioTensors({ inputName, outputName, features, mono, samples = -1, ...plan }: AudioPlan): {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
} {
  const frames = {
    waveform: mono ? [samples] : [-1, samples],
    frames: [-1, plan.frameLength],
    mel: [plan.mels, -1],
    fbank: [-1, plan.mels],
  };
  const inputs: TensorSpec[] =
    plan.input === "file"
      ? [{ name: inputName, dtype: "BYTES", shape: [1] }]
      : [{ name: inputName, dtype: "FP32", shape: [-1] }];
  const outputs: TensorSpec[] = [{ name: outputName, dtype: "FP32", shape: frames[features] }];
  if (plan.inputLengthsName !== undefined) {
    inputs.push({ name: plan.inputLengthsName, dtype: "INT32", shape: [1] });
  }
  if (plan.lengths) outputs.push({ name: plan.lengthsName, dtype: "INT32", shape: [1] });
  if (plan.stream) {
    inputs.push({ name: PAST, dtype: "FP32", shape: [-1] });
    outputs.push({ name: PRESENT, dtype: "FP32", shape: [-1] });
  }
  return { inputs, outputs };
}

function spectrogramOf(plan: AudioPlan): MelSpectrogram {
  const { sampleRate, nFft, mels, fMin, fMax, melScale, melNorm } = plan;
  const filters = melFilters(sampleRate, nFft, mels, fMin, fMax, melScale, melNorm === "slaney");
  return new MelSpectrogram({ ...plan, filters });
}

function joined(parts: readonly Float32Array[], length: number): Float32Array {
  if (parts.length === 1) return parts[0]!;
  const target = new Float32Array(parts.length * length);
  for (const [i, part] of parts.entries()) target.set(part, i * length);
  return target;
}

/**
 * Checks the number of all samples of a request.
 *
 * @throws TritonError INVALID_ARG if they are more than the limit
 */
export function assertNotTooLong({ inputName, maxSeconds, sampleRate }: AudioPlan, samples: number): void {
  if (samples <= maxSeconds * sampleRate) return;
  const seconds = (samples / sampleRate).toFixed(1);
  throw badFile(inputName, undefined, `expected at most ${maxSeconds} seconds of audio, got ${seconds}`);
}

interface Waveforms {
  /** Channels of each file: lists of the same length, because shorter files have silence at their end. */
  readonly files: readonly (readonly Float32Array[])[];
  /** Samples of each file without the silence. */
  readonly lengths: readonly number[];
}

const MAX_FILTERS = 8;

/** Samples that the filter reads beyond the end of the result when it cuts a file. */
const MARGIN = 64;

class WaveformReader {
  /** Filters by the sample rate of files, the least recently used first. */
  readonly #filters = new Map<number, Resampler>();

  constructor(private readonly plan: AudioPlan) {}

  /**
   * Decodes the files of a request.
   *
   * @throws TritonError INVALID_ARG for a file that is not WAV, is damaged, or exceeds a limit
   */
  read(files: readonly Uint8Array[]): Waveforms {
    const rowOf = (index: number) => (files.length === 1 ? undefined : index);
    const opened = files.map((file, index) => this.#open(file, rowOf(index)));
    this.#assertNotTooLong(opened);
    const decoded = opened.map((wav) => this.#samplesOf(wav));
    const lengths = decoded.map(([first]) => first!.length);
    const length = this.plan.samples ?? Math.max(...lengths);
    return { files: decoded.map((channels) => channels.map((samples) => padded(samples, length))), lengths };
  }

  /**
   * The samples of a request.
   *
   * @param counts samples of each row without padding; undefined if there is none
   * @throws TritonError INVALID_ARG for samples that are not finite, and for impossible lengths
   */
  readSamples(input: Tensor, counts: Tensor | undefined, hasRows: boolean): Waveforms {
    const { inputName, inputLengthsName, samples } = this.plan;
    const rows = hasRows ? input.shape[0]! : 1;
    const all = input.elements as Float32Array;
    const width = rows === 0 ? 0 : all.length / rows;
    if (samples === undefined) assertNotTooLong(this.plan, all.length);
    const given = Array.from({ length: rows }, (_, row) => {
      const count = Number(counts?.elements[row] ?? width);
      const place = rows === 1 ? undefined : row;
      if (count < 0 || count > width) {
        throw badFile(
          inputLengthsName!,
          place,
          `expected 0 to ${width} samples, as input '${inputName}' has, got ${count}`,
        );
      }
      const signal = all.subarray(row * width, row * width + count);
      const bad = firstNotFinite(signal);
      if (bad < 0) return signal;
      throw badFile(inputName, place, `expected finite samples, got ${signal[bad]} at ${bad}`);
    });
    const length = samples ?? width;
    const files = given.map((signal) => [padded(signal.subarray(0, length), length)]);
    return { files, lengths: given.map((signal) => Math.min(signal.length, length)) };
  }

  #open(file: Uint8Array, row: number | undefined): WavFile {
    const { inputName, maxBytes } = this.plan;
    if (file.byteLength > maxBytes) {
      throw badFile(inputName, row, `expected audio of at most ${maxBytes} bytes, got ${file.byteLength}`);
    }
    try {
      const wav = readWav(file);
      if (wav.length > 0 || this.plan.samples !== undefined) return wav;
      throw new RangeError("expected at least one sample, got none");
    } catch (error) {
      if (error instanceof RangeError) throw badFile(inputName, row, error.message, error);
      throw error;
    }
  }

  #assertNotTooLong(files: readonly WavFile[]): void {
    const { inputName, maxSeconds, samples, mono } = this.plan;
    const channels = files[0]?.channels;
    const other = mono ? -1 : files.findIndex((file) => file.channels !== channels);
    if (other >= 0) {
      const text = `expected ${channels} channels as in row 0, got ${files[other]!.channels}`;
      throw badFile(inputName, other, text);
    }
    if (samples !== undefined) return;
    const longest = Math.max(...files.map(({ length, sampleRate }) => length / sampleRate));
    if (longest * files.length <= maxSeconds) return;
    const size = files.length === 1 ? "" : ` (${files.length} files, each as long as the longest)`;
    const seconds = (longest * files.length).toFixed(1);
    const text = `expected at most ${maxSeconds} seconds of audio, got ${seconds}${size}`;
    throw badFile(inputName, undefined, text);
  }

  #samplesOf(wav: WavFile): Float32Array[] {
    const { samples, sampleRate, mono } = this.plan;
    const needed =
      samples === undefined
        ? wav.length
        : Math.ceil(((samples + MARGIN) * wav.sampleRate) / sampleRate) + MARGIN;
    const channels = decodeWav({ ...wav, length: Math.min(wav.length, needed) }, mono);
    const made =
      wav.sampleRate === sampleRate
        ? channels
        : channels.map((channel) => this.#filterOf(wav.sampleRate).resample(channel));
    return samples === undefined ? made : made.map((channel) => channel.subarray(0, samples));
  }

  #filterOf(rate: number): Resampler {
    const found = this.#filters.get(rate) ?? new Resampler(rate, this.plan.sampleRate);
    this.#filters.delete(rate);
    this.#filters.set(rate, found);
    if (this.#filters.size > MAX_FILTERS) this.#filters.delete(this.#filters.keys().next().value!);
    return found;
  }
}

/** Place of the first NaN or infinite value; -1 if there is none. */
function firstNotFinite(values: Float32Array): number {
  // Products with 0 are 0, or else NaN. Two sums do not wait for each other.
  let [sum, other] = [0, 0];
  for (let i = 0; i < values.length; i += 2) {
    sum += values[i]! * 0;
    other += (values[i + 1] ?? 0) * 0;
  }
  return sum + other === 0 ? -1 : values.findIndex((value) => !Number.isFinite(value));
}

function padded(samples: Float32Array, length: number): Float32Array {
  if (samples.length === length) return samples;
  const target = new Float32Array(length);
  target.set(samples);
  return target;
}

/** Dynamic range of Whisper's features, in powers of ten. */
const WHISPER_RANGE = 8;

/** Brings the values of a mel spectrogram to their scale. */
function scaleMels(mels: Float64Array, log: AudioLog, floor: number): Float32Array {
  if (log === "none") return Float32Array.from(mels);
  if (log === "ln") return Float32Array.from(mels, (value) => Math.log(Math.max(value, floor)));
  const factor = log === "db" ? 10 : 1;
  const logs = mels.map((value) => factor * Math.log10(Math.max(value, floor)));
  if (log !== "whisper") return Float32Array.from(logs);
  let largest = Number.NEGATIVE_INFINITY;
  for (const value of logs) largest = Math.max(largest, value);
  return Float32Array.from(logs, (value) => (Math.max(value, largest - WHISPER_RANGE) + 4) / 4);
}

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

  lengthOf(samples: number): number {
    return Math.ceil((samples * this.#up) / this.#down);
  }

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
