/** Encoding of the samples of a WAV file. */
export type SampleEncoding = "unsigned" | "integer" | "float" | "alaw" | "mulaw";

/** Contents of the chunk `fmt ` of a WAV file. */
export interface WavFormat {
  readonly encoding: SampleEncoding;
  readonly channels: number;
  /** Samples of each channel in a second. */
  readonly sampleRate: number;
  /** Bytes of one sample. */
  readonly sampleBytes: number;
}

const PCM = 1;
const FLOAT = 3;
const ALAW = 6;
const MULAW = 7;
const EXTENSIBLE = 0xfffe;

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
export function readWavFormat(chunk: DataView): WavFormat {
  if (chunk.byteLength < 16)
    throw new RangeError(`expected a chunk 'fmt ' of 16 bytes, got ${chunk.byteLength}`);
  let tag = chunk.getUint16(0, true);
  const channels = chunk.getUint16(2, true);
  const sampleRate = chunk.getUint32(4, true);
  const blockBytes = chunk.getUint16(12, true);
  const bits = chunk.getUint16(14, true);
  if (tag === EXTENSIBLE) {
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
  if (tag === PCM && bits === 8) return "unsigned";
  if (tag === PCM && (bits === 16 || bits === 24 || bits === 32)) return "integer";
  if (tag === FLOAT && (bits === 32 || bits === 64)) return "float";
  if (tag === ALAW && bits === 8) return "alaw";
  if (tag === MULAW && bits === 8) return "mulaw";
  throw new RangeError(
    `expected PCM of 8, 16, 24 or 32 bits, float of 32 or 64 bits, A-law or mu-law, got format ${tag} of ${bits} bits`,
  );
}
