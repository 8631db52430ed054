/*
 * A program that runs an ONNX model once and waits for its end. Arguments: where the model runs, and the file of the
 * model.
 */
import { fileURLToPath } from "node:url";
import { isMainThread, Worker } from "node:worker_threads";
import { onnxruntime, openSession } from "@tritonjs/backends/onnxruntime";
import { batch, Triton } from "@tritonjs/core";

const [place, model] = process.argv.slice(2);
const file = fileURLToPath(model);

/** Opens a session in this thread by hand, as a callback may. */
async function callback({ measurements }, context) {
  const session = await openSession(file, context);
  const { probabilities, species } = await session.run({ measurements });
  return { probabilities, species };
}

const ways = {
  worker: { inferFunc: onnxruntime({ model: file }) },
  native: { inferFunc: onnxruntime({ model: file, engine: "native" }) },
  process: { inferFunc: onnxruntime({ model: file }), instanceGroup: { isolation: "process" } },
  callback: { inferFunc: batch(callback) },
};

async function run({ inferFunc, instanceGroup }) {
  const triton = new Triton();
  const model = triton.bind({
    modelName: "iris",
    inferFunc,
    inputs: [{ name: "measurements", dtype: "FP32", shape: [4] }],
    outputs: [
      { name: "probabilities", dtype: "FP32", shape: [3] },
      { name: "species", dtype: "INT64", shape: [1] },
    ],
    config: { maxBatchSize: 4, ...(instanceGroup && { instanceGroup }) },
  });
  await model.inferBatch({ measurements: [[5.1, 3.5, 1.4, 0.2]] });
  const { pid = process.pid } = model.instances()[0].details;
  console.log(`ran in ${pid}.`);
  setInterval(() => {}, 1000);
}

if (isMainThread && place === "program in a thread") {
  new Worker(new URL(import.meta.url), { argv: [place, model] });
} else {
  await run(ways[place] ?? ways.worker);
}
