import { Tensor, type TensorSpec } from "@tritonjs/protocol";
import type { AudioLog, AudioPlan } from "./audio-options.js";
import { badFile } from "./media-parameters.js";
import { MelSpectrogram, melFilters } from "./mel-spectrogram.js";
import { Resampler } from "./resampler.js";
import { decodeWav, readWav, type WavFile } from "./wav.js";

/** Name of the output with the samples or frames of each file. */
export const LENGTHS = "lengths";

/** Makes the tensors of requests from their files. */
export class AudioPreparer {
  readonly #reader: WaveformReader;
  readonly #spectrogram: MelSpectrogram | undefined;

  constructor(private readonly plan: AudioPlan) {
    this.#reader = new WaveformReader(plan);
    if (plan.features === "mel") this.#spectrogram = spectrogramOf(plan);
  }

  /**
   * Prepares the files of a request.
   *
   * @param hasRows true if tensors have an axis of rows
   * @throws TritonError INVALID_ARG for a bad file
   */
  prepare(files: readonly Uint8Array[], hasRows: boolean): Map<string, Tensor> {
    const { outputName, lengths } = this.plan;
    const waveforms = this.#reader.read(files);
    const { shape, values } = this.#featuresOf(waveforms.files);
    const batch = hasRows ? [files.length] : [];
    const outputs = new Map([[outputName, Tensor.fromElements("FP32", [...batch, ...shape], values)]]);
    if (lengths) {
      const counts = Int32Array.from(waveforms.lengths, (samples) => this.#unitsOf(samples));
      outputs.set(LENGTHS, Tensor.fromElements("INT32", [...batch, 1], counts));
    }
    return outputs;
  }

  #featuresOf(files: readonly (readonly Float32Array[])[]): { shape: number[]; values: Float32Array } {
    const { mono, features, mels } = this.plan;
    const samples = files[0]![0]!.length;
    if (features === "waveform") {
      const all = files.flat();
      return {
        shape: mono ? [samples] : [files[0]!.length, samples],
        values: joined(all, samples),
      };
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

  /** Samples or frames of a file. */
  #unitsOf(samples: number): number {
    return this.plan.features === "waveform" ? samples : this.#framesOf(samples);
  }

  /**
   * Number of frames of a signal: at least one. Frames reach over the end of the signal, so that none of it is lost.
   */
  #framesOf(samples: number): number {
    const { features, frameLength, hopLength, log } = this.plan;
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

/** The tensors of a plan, without the axis of the rows. */
export function audioTensors({ inputName, outputName, features, mono, samples = -1, ...plan }: AudioPlan): {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
} {
  const frames = {
    waveform: mono ? [samples] : [-1, samples],
    frames: [-1, plan.frameLength],
    mel: [plan.mels, -1],
  };
  const outputs: TensorSpec[] = [{ name: outputName, dtype: "FP32", shape: frames[features] }];
  if (plan.lengths) outputs.push({ name: LENGTHS, dtype: "INT32", shape: [1] });
  return { inputs: [{ name: inputName, dtype: "BYTES", shape: [1] }], outputs };
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

/** Samples of the files of a request. */
interface Waveforms {
  /** Channels of each file: lists of the same length, because shorter files have silence at their end. */
  readonly files: readonly (readonly Float32Array[])[];
  /** Samples of each file without the silence. */
  readonly lengths: readonly number[];
}

/** Largest number of cached filters. */
const MAX_FILTERS = 8;

/** Samples that the filter reads beyond the end of the result when it cuts a file. */
const MARGIN = 64;

/** Decodes and resamples files. */
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
      throw badFile(
        inputName,
        other,
        `expected ${channels} channels as in row 0, got ${files[other]!.channels}`,
      );
    }
    if (samples !== undefined) return;
    const longest = Math.max(...files.map(({ length, sampleRate }) => length / sampleRate));
    if (longest * files.length <= maxSeconds) return;
    const size = files.length === 1 ? "" : ` (${files.length} files, each as long as the longest)`;
    throw badFile(
      inputName,
      undefined,
      `expected at most ${maxSeconds} seconds of audio, got ${(longest * files.length).toFixed(1)}${size}`,
    );
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
