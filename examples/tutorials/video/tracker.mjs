import { fileURLToPath } from "node:url";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { sequenceState } from "@tritonjs/core";
import ndarray from "ndarray";
import { framesOf } from "./frames.mjs";

/*
 * Two models: `detector` finds the object of a frame, in batches of the frames of all streams. `tracker` follows it
 * from frame to frame. A stream is a sequence, so its frames are tracked in their order, however many are in flight.
 */

/** Binds both models, and waits for them. @param detect the function or backend of the detector */
export async function bindTracker(
  triton,
  detect = onnxruntime({ model: fileURLToPath(new URL("./detector.onnx", import.meta.url)) }),
) {
  triton.bind({
    modelName: "detector",
    inputs: [{ name: "frame", dtype: "UINT8", shape: [-1, -1] }],
    outputs: [
      { name: "box", dtype: "INT32", shape: [4] },
      { name: "score", dtype: "FP32", shape: [1] },
    ],
    inferFunc: detect,
    config: { maxBatchSize: 8 },
  });
  const tracks = sequenceState(() => ({ frames: 0, previous: undefined }));
  const tracker = triton.bind({
    modelName: "tracker",
    inputs: [{ name: "frame", dtype: "UINT8", shape: [-1, -1] }],
    outputs: [
      { name: "box", dtype: "INT32", shape: [4] },
      { name: "score", dtype: "FP32", shape: [1] },
      { name: "motion", dtype: "INT32", shape: [2] },
      { name: "frames", dtype: "INT32", shape: [1] },
    ],
    inferFunc: (requests, context) =>
      Promise.all(
        requests.map(async ({ inputs, sequence }) => {
          const track = tracks(sequence);
          const { box, score } = await context.infer("detector", { frame: inputs.frame });
          const [left, top] = box.data;
          const [x, y] = track.previous ?? [left, top];
          track.previous = [left, top];
          track.frames++;
          return { box, score, motion: [[left - x, top - y]], frames: [[track.frames]] };
        }),
      ),
    config: { maxBatchSize: 8, sequence: { maxSequenceIdleMicroseconds: 60_000_000 } },
  });
  await triton.ready();
  return tracker;
}

let lastStream = 0;

/**
 * Sends the frames of a video through the tracker.
 *
 * @param inFlight frames that are read but not answered, at most. Further frames wait in the video's pipe
 * @param drops leave out frames instead, for a camera that does not wait
 * @param onFrame called with each answer, in order
 * @param onDrop called with the number of each frame that is left out
 * @returns counts, and the latency of the frames in milliseconds from their read to their answer
 */
export async function trackVideo(
  tracker,
  source,
  { inFlight = 4, drops = false, onFrame = () => {}, onDrop = () => {}, ...options } = {},
) {
  const id = ++lastStream;
  const started = performance.now();
  const latencies = [];
  const open = new Set();
  const report = { source, frames: 0, dropped: 0, mostInFlight: 0 };
  let failure;
  const send = (frame, isLast) => {
    const { index, width, height, luma } = frame;
    const sentAt = performance.now();
    const sequence = { id, start: report.frames === 0, end: isLast };
    report.frames++;
    const answer = tracker
      .inferBatch({ frame: ndarray(luma, [1, height, width]) }, { sequence })
      .then((outputs) => {
        latencies.push(performance.now() - sentAt);
        onFrame(index, outputs);
      })
      .catch((error) => {
        failure ??= error;
      })
      .finally(() => open.delete(answer));
    open.add(answer);
    report.mostInFlight = Math.max(report.mostInFlight, open.size);
  };
  for await (const { frame, isLast } of withLast(framesOf(source, options))) {
    if (failure !== undefined) break;
    // The last frame ends the sequence, so it is never left out.
    if (open.size >= inFlight && drops && !isLast) {
      report.dropped++;
      onDrop(frame.index);
      continue;
    }
    while (open.size >= inFlight) await Promise.race(open);
    send(frame, isLast);
  }
  await Promise.all(open);
  if (failure !== undefined)
    throw new Error(`tracking '${source}' failed: ${failure.message}`, { cause: failure });
  const seconds = (performance.now() - started) / 1000;
  return { ...report, perSecond: latencies.length / seconds, ...percentiles(latencies) };
}

/** Marks the last frame. It holds one frame. */
async function* withLast(frames) {
  let held;
  for await (const frame of frames) {
    if (held !== undefined) yield { frame: held, isLast: false };
    held = frame;
  }
  if (held !== undefined) yield { frame: held, isLast: true };
}

function percentiles(latencies) {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p50: at(0.5), p95: at(0.95), worst: sorted.at(-1) ?? 0 };
}
