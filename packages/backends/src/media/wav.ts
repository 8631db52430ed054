/** A WAV file: where its samples are, and how they are encoded. */
export interface WavFile extends WavFormat {
  /** The samples, block by block, with one sample for each channel in a block. */
  readonly data: DataView;
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

type SampleEncoding = "unsigned" | "integer" | "float" | "alaw" | "mulaw";

interface WavFormat {
  readonly encoding: SampleEncoding;
  readonly channels: number;
  /** Samples of each channel in a second. */
  readonly sampleRate: number;
  readonly sampleBytes: number;
}

const PCM_FORMAT = 1;
const FLOAT_FORMAT = 3;
const ALAW_FORMAT = 6;
const MULAW_FORMAT = 7;
const EXTENSIBLE_FORMAT = 0xfffe;

/** Last 14 bytes of the GUIDs whose first two are one of the numbers above. */
const GUID_TAIL = [0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71];

const MAX_CHANNELS = 64;
const MAX_RATE = 768_000;

/**
 * Reads a chunk `fmt `.
 *
 * @param chunk its data
 * @throws RangeError that names the expected content
 */
function readWavFormat(chunk: DataView): WavFormat {
  if (chunk.byteLength < 16)
    throw new RangeError(`expected a chunk 'fmt ' of 16 bytes, got ${chunk.byteLength}`);
  let tag = chunk.getUint16(0, true);
  const channels = chunk.getUint16(2, true);
  const sampleRate = chunk.getUint32(4, true);
  const blockBytes = chunk.getUint16(12, true);
  const bits = chunk.getUint16(14, true);
  if (tag === EXTENSIBLE_FORMAT) {
    if (chunk.byteLength < 40) {
      throw new RangeError(`expected a chunk 'fmt ' of 40 bytes (extensible), got ${chunk.byteLength}`);
    }
    if (GUID_TAIL.some((byte, i) => chunk.getUint8(26 + i) !== byte)) {
      throw new RangeError("expected PCM, float, A-law or mu-law, got another extensible format");
    }
    tag = chunk.getUint16(24, true);
  }
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw new RangeError(`expected 1 to ${MAX_CHANNELS} channels, got ${channels}`);
  }
  if (sampleRate < 1 || sampleRate > MAX_RATE) {
    throw new RangeError(`expected a sample rate from 1 to ${MAX_RATE} Hz, got ${sampleRate}`);
  }
  const sampleBytes = Math.ceil(bits / 8);
  const encoding = encodingOf(tag, bits);
  if (blockBytes !== sampleBytes * channels) {
    throw new RangeError(
      `expected blocks of ${sampleBytes * channels} bytes (${channels} channels of ${bits} bits), got ${blockBytes}`,
    );
  }
  return { encoding, channels, sampleRate, sampleBytes };
}

function encodingOf(tag: number, bits: number): SampleEncoding {
  if (tag === PCM_FORMAT && bits === 8) return "unsigned";
  if (tag === PCM_FORMAT && (bits === 16 || bits === 24 || bits === 32)) return "integer";
  if (tag === FLOAT_FORMAT && (bits === 32 || bits === 64)) return "float";
  if (tag === ALAW_FORMAT && bits === 8) return "alaw";
  if (tag === MULAW_FORMAT && bits === 8) return "mulaw";
  throw new RangeError(
    `expected PCM of 8, 16, 24 or 32 bits, float of 32 or 64 bits, A-law or mu-law, got format ${tag} of ${bits} bits`,
  );
}

/** Reads the sample at a place; full scale is 1. */
type ReadSample = (data: DataView, place: number) => number;

/** Chooses the reader of an encoding. NaN and infinities of float samples become 0. */
function sampleReader(encoding: SampleEncoding, sampleBytes: number): ReadSample {
  if (encoding === "unsigned") return (data, place) => (data.getUint8(place) - 128) / 128;
  if (encoding === "alaw") return (data, place) => ALAW[data.getUint8(place)]!;
  if (encoding === "mulaw") return (data, place) => MULAW[data.getUint8(place)]!;
  if (encoding === "float") {
    return sampleBytes === 4
      ? (data, place) => finite(data.getFloat32(place, true))
      : (data, place) => finite(data.getFloat64(place, true));
  }
  if (sampleBytes === 2) return (data, place) => data.getInt16(place, true) / 2 ** 15;
  if (sampleBytes === 4) return (data, place) => data.getInt32(place, true) / 2 ** 31;
  return (data, place) => ((data.getInt8(place + 2) << 16) | data.getUint16(place, true)) / 2 ** 23;
}

/** Replaces NaN and infinities by 0: one such sample would make every value computed from it NaN. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

/** ITU-T G.711: a sign, 3 bits of the segment, 4 bits inside it. */
const ALAW = Float64Array.from({ length: 256 }, (_, code) => {
  const bits = code ^ 0x55;
  const segment = (bits & 0x70) >> 4;
  const inside = ((bits & 0x0f) << 4) + 8;
  const size = segment === 0 ? inside : (inside + 0x100) << (segment - 1);
  return ((bits & 0x80) === 0 ? -size : size) / 2 ** 15;
});

const MULAW = Float64Array.from({ length: 256 }, (_, code) => {
  const bits = ~code & 0xff;
  const size = ((((bits & 0x0f) << 3) + 0x84) << ((bits & 0x70) >> 4)) - 0x84;
  return ((bits & 0x80) === 0 ? size : -size) / 2 ** 15;
});
