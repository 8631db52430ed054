import { sampleReader } from "./sample-reader.js";
import { readWavFormat, type WavFormat } from "./wav-format.js";

/** A WAV file: where its samples are, and how they are encoded. */
export interface WavFile extends WavFormat {
  /** The samples, block by block, with one sample for each channel in a block. */
  readonly data: DataView;
  /** Number of samples of each channel. */
  readonly length: number;
}

/** Size of a chunk in files that were written to a pipe: the chunk ends with the file. */
const UNKNOWN_SIZE = 0xffffffff;

/**
 * Finds the samples in a WAV file without decoding them.
 *
 * @throws RangeError that names the expected content, for a file that is not WAV, is cut, or has another encoding
 */
export function readWav(file: Uint8Array): WavFile {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.byteLength < 12 || nameAt(view, 0) !== "RIFF" || nameAt(view, 8) !== "WAVE") {
    throw new RangeError(`expected a WAV file, got ${file.byteLength} bytes of something else`);
  }
  let format: WavFormat | undefined;
  for (let place = 12; place + 8 <= view.byteLength; ) {
    const name = nameAt(view, place);
    const size = view.getUint32(place + 4, true);
    const start = place + 8;
    const left = view.byteLength - start;
    if (name === "data") return samplesOf(format, view, start, size === UNKNOWN_SIZE ? left : size);
    if (size > left)
      throw new RangeError(`expected ${size} bytes in the chunk '${name}', got ${left}: the file is cut`);
    if (name === "fmt ") format = readWavFormat(new DataView(view.buffer, view.byteOffset + start, size));
    // Chunks begin at even places.
    place = start + size + (size % 2);
  }
  throw new RangeError(`expected a chunk 'data', got the end of the file after ${view.byteLength} bytes`);
}

/**
 * Decodes a WAV file. Full scale is 1.
 *
 * @returns samples of each channel, or one list with their mean
 */
export function decodeWav(
  { encoding, channels, sampleBytes, data, length }: WavFile,
  mono: boolean,
): Float32Array[] {
  const read = sampleReader(encoding, sampleBytes);
  if (mono) {
    const mean = new Float32Array(length);
    for (let i = 0, place = 0; i < length; i++) {
      let sum = 0;
      for (let channel = 0; channel < channels; channel++, place += sampleBytes) sum += read(data, place);
      mean[i] = sum / channels;
    }
    return [mean];
  }
  return Array.from({ length: channels }, (_, channel) => {
    const samples = new Float32Array(length);
    const step = channels * sampleBytes;
    for (let i = 0, place = channel * sampleBytes; i < length; i++, place += step)
      samples[i] = read(data, place);
    return samples;
  });
}

function samplesOf(format: WavFormat | undefined, view: DataView, start: number, size: number): WavFile {
  if (format === undefined) throw new RangeError("expected a chunk 'fmt ' before 'data', got none");
  const left = view.byteLength - start;
  if (size > left) throw new RangeError(`expected ${size} bytes of samples, got ${left}: the file is cut`);
  const length = Math.floor(size / (format.channels * format.sampleBytes));
  return { ...format, data: new DataView(view.buffer, view.byteOffset + start, size), length };
}

function nameAt(view: DataView, place: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((i) => view.getUint8(place + i)));
}
