/* Measures how long a batch of n rows takes on one execution provider, from CPU memory and back to it. */
import ort from "onnxruntime-node";
import { onnxModels } from "../support/onnx-models.mjs";
import { median } from "../support/pairs.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";

const { model, provider } = programOptions();
const { bytes, shape } = onnxModels[model]();
let session;

/** Opens the model, or returns the reason why the provider does not work. */
async function open() {
  try {
    session = await ort.InferenceSession.create(bytes, {
      executionProviders: [provider],
      logSeverityLevel: 4,
    });
    await session.run(batchOf(1));
    return { works: true };
  } catch (error) {
    return { works: false, reason: String(error?.message ?? error).split("\n")[0] };
  }
}

function batchOf(rows) {
  const elements = shape.reduce((product, dim) => product * dim, rows);
  return { x: new ort.Tensor("float32", new Float32Array(elements).fill(0.5), [rows, ...shape]) };
}

/** Milliseconds of a batch: the median of the runs that fit into the time, at least three. */
async function time(rows, seconds) {
  const feeds = batchOf(rows);
  await session.run(feeds);
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (times.length < 3 || performance.now() < end) {
    const start = performance.now();
    await session.run(feeds);
    times.push(performance.now() - start);
  }
  return median(times);
}

answerCalls({ open, time });
