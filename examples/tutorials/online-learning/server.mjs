import { once } from "node:events";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { batch, Triton } from "@tritonjs/core";
import { PIXELS, randomNumbers } from "./digits.mjs";
import { classify, freshWeights } from "./network.mjs";

/*
 * Two models: `digits` answers, `digits_train` learns. Training runs in a thread, so it delays no answer. The weights
 * that answer are replaced in one assignment, between two batches: each batch reads them once.
 */

const { values } = parseArgs({ options: { port: { type: "string", default: "8000" } } });

let serving = { version: 0, weights: freshWeights(randomNumbers(1)) };

const trainer = new Worker(new URL("./trainer.mjs", import.meta.url), {
  workerData: { weights: serving.weights.slice(), publishEvery: 2 },
});
const waiting = new Map();
let lastId = 0;
trainer.on("message", ({ id, losses, published }) => {
  if (published !== undefined) serving = { version: serving.version + 1, weights: published };
  waiting.get(id).resolve(losses);
  waiting.delete(id);
});
trainer.on("error", (error) => {
  for (const { reject } of waiting.values()) reject(error);
});

function trainBatch(images, targets) {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    trainer.postMessage({ id, images, targets });
  });
}

const triton = new Triton({
  httpPort: Number(values.port),
  allowGrpc: false,
  allowMetrics: false,
  security: { restrictedEndpoints: [] },
});

triton.bind({
  modelName: "digits",
  inputs: [{ name: "image", dtype: "FP32", shape: [PIXELS] }],
  outputs: [
    { name: "scores", dtype: "FP32", shape: [10] },
    { name: "version", dtype: "INT32", shape: [1] },
  ],
  inferFunc: batch(({ image }) => {
    const { version, weights } = serving;
    const rows = image.shape[0];
    return { scores: classify(weights, image.data), version: new Int32Array(rows).fill(version) };
  }),
  config: { maxBatchSize: 64 },
});

triton.bind({
  modelName: "digits_train",
  inputs: [
    { name: "image", dtype: "FP32", shape: [PIXELS] },
    { name: "target", dtype: "INT32", shape: [1] },
  ],
  outputs: [{ name: "loss", dtype: "FP32", shape: [1] }],
  // The copies go to the thread: the arrays of a callback belong to its requests.
  inferFunc: batch(async ({ image, target }) => ({
    loss: await trainBatch(image.data.slice(), target.data.slice()),
  })),
  config: { maxBatchSize: 512, batcher: { maxQueueDelayMicroseconds: 1000 } },
});

const { addresses } = await triton.serve();
console.log(`Serving digits and digits_train at ${addresses.http.url}`);
await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
await triton.close();
await trainer.terminate();
