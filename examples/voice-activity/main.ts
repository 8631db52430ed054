/*
 * Finds speech in the audio of many callers at once, 32 ms at a time. `npm start -- recording.wav` reads a recording of
 * your own.
 */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { bindDetector } from "./detector.js";
import { CHUNK, sileroModel } from "./silero-model.js";
import { describeSegments, type Segment, speechSegments } from "./speech-segments.js";
import { readWav } from "./wav.js";

const CALLERS = 32;
const given = process.argv.slice(2);
const paths =
  given.length > 0
    ? given
    : ["go-forward.wav", "five-five.wav"].map((name) => new URL(`../recordings/${name}`, import.meta.url));

await using triton = new Triton();
const silero = await sileroModel();
const together = bindDetector(triton, silero, { modelName: "voice-activity", maxBatchSize: 32 });
const alone = bindDetector(triton, silero, { modelName: "voice-activity-unbatched", maxBatchSize: 1 });
const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });

// Each recording is a stream of gRPC.
const client = new InferenceServerClient(addresses.grpc!.url);
const recordings: { samples: Float32Array; segments: Segment[] }[] = [];
for (const [i, path] of paths.entries()) {
  const samples = readWav(await readFile(path));
  const segments = speechSegments(await listen(samples, `stream-${i}`));
  recordings.push({ samples, segments });
  console.log(`${basename(path.toString())}: ${describeSegments(segments)}`);
}
client.close();

/** Sends a recording over a stream of gRPC. Returns the probability of speech in each chunk. */
async function listen(samples: Float32Array, id: string): Promise<number[]> {
  const requests = function* () {
    for (const { chunk, start, end } of chunksOf(samples)) {
      const input = { datatype: "FP32", shape: [1, CHUNK], data: chunk } as const;
      yield { modelName: "voice-activity", inputs: { chunk: input }, sequence: { id, start, end } };
    }
  };
  const probabilities: number[] = [];
  for await (const { result, error } of client.streamInfer(requests())) {
    if (error !== undefined) throw error;
    probabilities.push(result.elements("output", "FP32")[0]!);
  }
  return probabilities;
}

// Many callers at the same time, each of whom begins to speak a little later than the one before.
const calls = Array.from({ length: CALLERS }, (_, i) => {
  const { samples, segments } = recordings[i % recordings.length]!;
  const silence = (i % 8) * CHUNK;
  const audio = new Float32Array(silence + samples.length);
  audio.set(samples, silence);
  return { audio, delay: silence / 16_000, segments };
});

interface Run {
  /** Segments of each call. */
  readonly segments: readonly Segment[][];
  /** Milliseconds that each chunk took, sorted. */
  readonly latencies: readonly number[];
  /** Milliseconds for all calls. */
  readonly duration: number;
}

async function follow(model: typeof together): Promise<Run> {
  const latencies: number[] = [];
  const begin = performance.now();
  const segments = await Promise.all(
    calls.map(async ({ audio }, caller) => {
      const probabilities: number[] = [];
      for (const { chunk, start, end } of chunksOf(audio)) {
        const sent = performance.now();
        const { output } = await model.inferSample(
          { chunk },
          { sequence: { id: `call-${caller}`, start, end } },
        );
        latencies.push(performance.now() - sent);
        probabilities.push(output.get(0));
      }
      return speechSegments(probabilities);
    }),
  );
  return { segments, latencies: latencies.sort((a, b) => a - b), duration: performance.now() - begin };
}

/** Chunks of a recording; the last one is filled up with silence. */
function* chunksOf(samples: Float32Array) {
  for (let at = 0; at < samples.length; at += CHUNK) {
    const chunk = new Float32Array(CHUNK);
    chunk.set(samples.subarray(at, at + CHUNK));
    yield { chunk, start: at === 0, end: at + CHUNK >= samples.length };
  }
}

const before = together.statistics().executionCount;
const batched = await follow(together);
const batches = together.statistics().executionCount - before;
const unbatched = await follow(alone);

const chunks = batched.latencies.length;
const inPlace = [...calls.keys()].filter((i) => isDelayed(batched.segments[i]!, calls[i]!)).length;
console.log(`${CALLERS} calls at once: speech found where it is in ${inPlace} of them`);
console.log(`${chunks} chunks in ${batches} batches, ${(chunks / batches).toFixed(1)} calls in each`);
for (const [name, run] of Object.entries({ "one by one": unbatched, "in batches": batched })) {
  const [median, slow] = [0.5, 0.99].map((share) => run.latencies[Math.floor(share * chunks)]!);
  console.log(
    `${name}: ${(run.duration / chunks).toFixed(2)} ms a chunk, ` +
      `answered after ${median!.toFixed(1)} ms (median) and ${slow!.toFixed(1)} ms (99%)`,
  );
}
console.log(`batches are ${(unbatched.duration / batched.duration).toFixed(1)} times as fast`);

/** Whether a call has the segments of its recording, later by its delay. Silence before may shift an edge by a chunk. */
function isDelayed(found: readonly Segment[], { segments, delay }: (typeof calls)[number]): boolean {
  const near = (a: number, b: number) => Math.abs(a - delay - b) < 0.065;
  return (
    found.length === segments.length &&
    found.every(({ from, to }, i) => near(from, segments[i]!.from) && near(to, segments[i]!.to))
  );
}
