/*
 * An ONNX model behind tritonjs, over HTTP and in process. Its configuration has `batcher` and `maxBatchSize`.
 */

import { serviceOf } from "@tritonjs/server";
import { onnxModels } from "../support/onnx-models.mjs";
import { answerCalls, eventLoopDelay, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, model: name, maxBatchSize = 32, threads = 1, batcher, engine = "worker" } = programOptions();
const { Triton } = await importOf(tree, "core");
const { onnxruntime } = await importOf(tree, "backends", "onnxruntime/index");
const { http } = await importOf(tree, "http");

const { bytes, shape } = onnxModels[name]();
const triton = new Triton();
const model = triton.bind({
  modelName: name,
  inferFunc: onnxruntime({ model: bytes, intraOpNumThreads: threads, engine }),
  config: { maxBatchSize, ...(batcher && { batcher }), modelWarmup: [warmup(1), warmup(maxBatchSize)] },
});
await triton.ready();
const { url } = await http({ port: 0 }).start(serviceOf(triton));

function warmup(batchSize) {
  return { name: `rows-${batchSize}`, batchSize, inputs: { x: { dtype: "FP32", shape } } };
}

/** Sends requests in process, with `concurrency` in flight. */
async function run(concurrency, seconds) {
  const x = new Float32Array(shape.reduce((product, dim) => product * dim, 1)).fill(0.5);
  const start = performance.now();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    for (; performance.now() < end; answers++) await model.inferSample({ x });
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return { rate: (answers * 1000) / (performance.now() - start) };
}

/** Average rows in a batch since the last call. */
let seen = { inferenceCount: 0, executionCount: 0 };
function batchSize() {
  const { inferenceCount, executionCount } = model.statistics();
  const rows = (inferenceCount - seen.inferenceCount) / (executionCount - seen.executionCount);
  seen = { inferenceCount, executionCount };
  return rows;
}

answerCalls({ url: () => url.replace("localhost", "127.0.0.1"), run, batchSize, delay: eventLoopDelay() });
