/*
 * A program that runs an ONNX model once in each way that it is asked for, and waits for its end. Arguments: "main" for
 * all ways, or "thread" for one way of a program in a thread, and the file of the model.
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

const ways = [
  { inferFunc: onnxruntime({ model: file }) },
  { inferFunc: onnxruntime({ model: file, engine: "native" }) },
  { inferFunc: onnxruntime({ model: file }), instanceGroup: { isolation: "process" } },
  { inferFunc: batch(callback) },
];

/** Returns the id of the process in which the model has run. */
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
  return model.instances()[0].details.pid ?? process.pid;
}

if (isMainThread && place === "thread") {
  new Worker(new URL(import.meta.url), { argv: [place, model] });
} else {
  const pids = [];
  for (const way of place === "main" ? ways : ways.slice(0, 1)) pids.push(await run(way));
  console.log(`ran in ${pids.join(",")}.`);
  setInterval(() => {}, 1000);
}
