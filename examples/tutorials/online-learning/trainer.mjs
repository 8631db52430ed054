import { parentPort, workerData } from "node:worker_threads";
import { PIXELS } from "./digits.mjs";
import { train } from "./network.mjs";

/* The thread that trains. It has weights of its own, and sends a copy after every few batches, in each of which it makes a step for every 64 pictures. */

const { weights, publishEvery } = workerData;
const RATE = 1;
const STEP = 64;
let batches = 0;

parentPort.on("message", ({ id, images, targets }) => {
  const losses = new Float32Array(targets.length);
  for (let row = 0; row < targets.length; row += STEP) {
    const rows = targets.subarray(row, row + STEP);
    losses.set(train(weights, images.subarray(row * PIXELS, (row + STEP) * PIXELS), rows, RATE), row);
  }
  batches++;
  const published = batches % publishEvery === 0 ? weights.slice() : undefined;
  const moved = published === undefined ? [] : [published.buffer];
  parentPort.postMessage({ id, losses, published }, [losses.buffer, ...moved]);
});
