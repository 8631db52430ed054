/*
 * Does a model of 100 ms block the event loop? The same ONNX model runs through tritonjs (in a worker thread) and
 * through `session.run` on the main thread. The benchmark measures the delay of the event loop meanwhile.
 */
import { createHistogram } from "node:perf_hooks";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import ort from "onnxruntime-node";
import { saveResult } from "./support/save-result.mjs";
import { slowModel } from "./support/slow-model.mjs";

const TARGET_MS = 100;
const RUNS = 20;
const TICK_MS = 1;

/** Runs `work` and measures the delay of each tick of a timer. */
async function lateness(work) {
  const histogram = createHistogram();
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    histogram.record(Math.max(1, Math.round((now - last - TICK_MS) * 1000)));
    last = now;
  }, TICK_MS);
  const start = performance.now();
  for (let i = 0; i < RUNS; i++) await work();
  const msPerRun = (performance.now() - start) / RUNS;
  clearInterval(timer);
  return {
    msPerRun,
    p50: histogram.percentile(50) / 1000,
    p99: histogram.percentile(99) / 1000,
    max: histogram.max / 1000,
  };
}

const { bytes, input } = await slowModel(TARGET_MS);
const session = await ort.InferenceSession.create(bytes, { intraOpNumThreads: 1 });
const triton = new Triton();
const model = triton.bind({
  modelName: "slow",
  inferFunc: onnxruntime({ model: bytes, intraOpNumThreads: 1 }),
  config: { batching: false },
});
await model.ready();

const rows = {
  "tritonjs (worker)": await lateness(() => model.infer({ x: input })),
  "session.run on the main thread": await lateness(() =>
    session.run({ x: new ort.Tensor("float32", input, [input.length / 1024, 1024]) }),
  ),
};
await session.release();
await triton.close();

const round = (value) => Math.round(value * 100) / 100;
console.table(
  Object.fromEntries(
    Object.entries(rows).map(([name, row]) => [
      name,
      {
        "ms a run": round(row.msPerRun),
        "delay p50 ms": round(row.p50),
        "delay p99 ms": round(row.p99),
        "delay max ms": round(row.max),
      },
    ]),
  ),
);
const worker = rows["tritonjs (worker)"];
console.log(`p99 delay under 10 ms with tritonjs: ${worker.p99 < 10 ? "yes" : "no"}`);
saveResult("event-loop", rows);
