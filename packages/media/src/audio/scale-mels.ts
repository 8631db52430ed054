import type { AudioLog } from "./audio-options.js";

/** Dynamic range of Whisper's features, in powers of ten. */
const WHISPER_RANGE = 8;

/** Brings the values of a mel spectrogram to their scale. */
export function scaleMels(mels: Float64Array, log: AudioLog, floor: number): Float32Array {
  if (log === "none") return Float32Array.from(mels);
  if (log === "ln") return Float32Array.from(mels, (value) => Math.log(Math.max(value, floor)));
  const factor = log === "db" ? 10 : 1;
  const logs = mels.map((value) => factor * Math.log10(Math.max(value, floor)));
  if (log !== "whisper") return Float32Array.from(logs);
  let largest = Number.NEGATIVE_INFINITY;
  for (const value of logs) largest = Math.max(largest, value);
  return Float32Array.from(logs, (value) => (Math.max(value, largest - WHISPER_RANGE) + 4) / 4);
}
