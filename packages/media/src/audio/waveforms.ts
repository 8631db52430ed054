import { badFile } from "../parameters/bytes-input.js";
import { Resampler } from "../signal/resampler.js";
import { decodeWav, readWav, type WavFile } from "../wav/read-wav.js";
import type { AudioPlan } from "./audio-plan.js";

/** Samples of the files of a request. */
export interface Waveforms {
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
export class WaveformReader {
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
