/*
 * How long does it take to cancel 100 000 queued requests at once? They wait in front of a busy model, each with a
 * timeout of its own. The reference is the same number of promises, each rejected by an AbortSignal of its own.
 */
import { Tensor, Triton } from "@tritonjs/core";
import { saveResult } from "./support/save-result.mjs";

const REQUESTS = 100_000;
const ROUNDS = 5;

const triton = new Triton();
let release = () => {};
const model = triton.bind({
  modelName: "batched",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: async (requests) => {
    await new Promise((resolve) => (release = resolve));
    return requests.map(({ inputs }) => ({ y: inputs.x }));
  },
  config: {
    maxBatchSize: 8,
    batcher: { defaultQueuePolicy: { defaultTimeoutMicroseconds: 3_600_000_000 } },
  },
});
await model.ready();

function send() {
  const inputs = new Map([["x", Tensor.fromElements("FP32", [1, 1], new Float32Array(1))]]);
  return triton.service.model("batched", "").infer({ inputs }, () => {});
}

function shuffled(list) {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

async function queued() {
  send();
  await new Promise((resolve) => setImmediate(resolve));
  const requests = shuffled(Array.from({ length: REQUESTS }, send));
  const start = performance.now();
  for (const request of requests) request.cancel();
  const ms = performance.now() - start;
  if (model.queue().queued !== 0) throw new Error("requests are left in the queue");
  release();
  await new Promise((resolve) => setImmediate(resolve));
  return ms;
}

async function aborted() {
  const waits = Array.from({ length: REQUESTS }, () => {
    const controller = new AbortController();
    const promise = new Promise((_, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason), { once: true });
    });
    promise.catch(() => {});
    return controller;
  });
  const start = performance.now();
  for (const controller of waits) controller.abort("over");
  return performance.now() - start;
}

const runs = { here: [], signals: [] };
for (let round = 0; round < ROUNDS; round++) {
  runs.here.push(await queued());
  runs.signals.push(await aborted());
}
await triton.close();
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const round = (value) => Math.round(value * 100) / 100;
const rows = {
  "requests of a queue": { "ms for 100 000": round(median(runs.here)) },
  "promises with a signal each": { "ms for 100 000": round(median(runs.signals)) },
};
console.table(rows);
saveResult("cancel-queued", rows);
