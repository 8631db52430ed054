import { CHUNK } from "./silero-model.js";
import { SAMPLE_RATE } from "./wav.js";

/** A part of a recording with speech, in seconds. */
export interface Segment {
  readonly from: number;
  readonly to: number;
}

/** Speech begins with a chunk of this probability ... */
const BEGIN = 0.5;
/** ... and ends before the first chunk that is less probable than this. */
const END = 0.35;

/** The segments of a stream, given the probability of each chunk. */
export function speechSegments(probabilities: readonly number[]): Segment[] {
  const segments: Segment[] = [];
  let begin: number | undefined;
  for (const [chunk, probability] of [...probabilities, 0].entries()) {
    if (begin === undefined && probability >= BEGIN) begin = chunk;
    if (begin === undefined || probability >= END) continue;
    segments.push({ from: (begin * CHUNK) / SAMPLE_RATE, to: (chunk * CHUNK) / SAMPLE_RATE });
    begin = undefined;
  }
  return segments;
}

/** The segments in words. */
export function describeSegments(segments: readonly Segment[]): string {
  if (segments.length === 0) return "no speech";
  return segments.map(({ from, to }) => `${from.toFixed(2)} s to ${to.toFixed(2)} s`).join(", ");
}
