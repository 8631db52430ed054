/*
 * The highest rate of a model: ready-made batches of the best size in a loop, in one thread. A batch takes at most 20
 * ms, because clients wait for answers.
 */
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import ort from "onnxruntime-node";
import { onnxModels } from "../support/onnx-models.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";

const SIZES = [1, 2, 4, 8, 16, 32, 64];
const PROBE_SECONDS = 0.4;
const LONGEST_MS = 20;

if (isMainThread) {
  const { model, threads = 1 } = programOptions();
  const worker = new Worker(new URL(import.meta.url), { workerData: { model, threads } });
  const inWorker = (message) =>
    new Promise((resolve) => {
      worker.once("message", resolve);
      worker.postMessage(message);
    });
  let best = { rate: 0, size: 0 };
  for (const size of SIZES) {
    await inWorker({ size, seconds: 0.05 });
    const { rate } = await inWorker({ size, seconds: PROBE_SECONDS });
    if ((size * 1000) / rate > LONGEST_MS) break;
    if (rate > best.rate * 1.03) best = { rate, size };
  }
  answerCalls({ size: () => best.size, run: (seconds) => inWorker({ size: best.size, seconds }) });
} else {
  const { bytes, shape } = onnxModels[workerData.model]();
  const session = await ort.InferenceSession.create(bytes, { intraOpNumThreads: workerData.threads });
  parentPort.on("message", async ({ size, seconds }) => {
    const elements = shape.reduce((product, dim) => product * dim, size);
    const x = new ort.Tensor("float32", new Float32Array(elements).fill(0.5), [size, ...shape]);
    const start = performance.now();
    let rows = 0;
    for (; performance.now() - start < seconds * 1000; rows += size) await session.run({ x });
    parentPort.postMessage({ rate: (rows * 1000) / (performance.now() - start) });
  });
}
