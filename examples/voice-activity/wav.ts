/** Samples per second that the model expects. */
export const SAMPLE_RATE = 16_000;

/**
 * Samples of a WAV file from -1 to 1, at {@link SAMPLE_RATE}. A higher rate is reduced by averaging.
 *
 * @throws Error for anything but 16-bit PCM with one channel at a multiple of that rate
 */
export function readWav(bytes: Buffer): Float32Array {
  if (bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WAVE") {
    throw new Error("expected a WAV file, got other bytes");
  }
  let step = 0;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString("latin1", at, at + 4);
    const length = bytes.readUInt32LE(at + 4);
    const chunk = bytes.subarray(at + 8, at + 8 + length);
    if (name === "fmt ") step = sampleStep(chunk);
    if (name === "data" && step > 0) return average(chunk, step);
    at += 8 + length + (length % 2);
  }
  throw new Error("expected a WAV file with a format and data, got one without");
}

/** How many samples of the file become one. */
function sampleStep(format: Buffer): number {
  const [encoding, channels, rate, bits] = [
    format.readUInt16LE(0),
    format.readUInt16LE(2),
    format.readUInt32LE(4),
    format.readUInt16LE(14),
  ];
  const step = rate / SAMPLE_RATE;
  if (encoding !== 1 || channels !== 1 || bits !== 16 || step < 1 || !Number.isInteger(step)) {
    throw new Error(
      `expected 16-bit PCM with one channel at a multiple of ${SAMPLE_RATE} Hz, ` +
        `got encoding ${encoding}, ${channels} channels, ${bits} bits, ${rate} Hz`,
    );
  }
  return step;
}

function average(data: Buffer, step: number): Float32Array {
  const samples = new Float32Array(Math.floor(data.length / 2 / step));
  for (let i = 0; i < samples.length; i++) {
    for (let j = 0; j < step; j++) samples[i]! += data.readInt16LE(2 * (i * step + j)) / 32768 / step;
  }
  return samples;
}
