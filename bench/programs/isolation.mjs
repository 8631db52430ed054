/* A model with one instance in the given isolation, called in process with one request at a time. */

import { median } from "../support/pairs.mjs";
import { answerCalls, programOptions, treeCpuMicroseconds } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, isolation } = programOptions();
const { Triton } = await importOf(tree, "core");

const file = new URL("./isolated-model.mjs", import.meta.url);
const triton = new Triton();
const model = triton.bind({
  modelName: "m",
  inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
  inferFunc: isolation === "inline" ? (await import(file)).default : file,
  config: { batching: false, ...(isolation !== "inline" && { instanceGroup: { isolation } }) },
});
await triton.ready();

/** Mean CPU microseconds of a call with a tensor of `byteSize` bytes. The process of the instance counts too. */
async function run(byteSize, seconds) {
  const x = new Float32Array(byteSize / 4);
  const end = performance.now() + seconds * 1000;
  const cpu = treeCpuMicroseconds();
  let calls = 0;
  for (; performance.now() < end; calls++) await model.infer({ x });
  return (treeCpuMicroseconds() - cpu) / calls;
}

/** Median delay of timers in milliseconds, while each call computes for `computeMs`. */
async function delayOf(computeMs, seconds) {
  const end = performance.now() + Math.max(seconds * 1000, 10 * computeMs);
  const delays = [];
  const timers = async () => {
    while (performance.now() < end) {
      const due = performance.now() + 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
      delays.push(performance.now() - due);
    }
  };
  const calls = async () => {
    while (performance.now() < end) {
      await model.infer({ x: Float32Array.of(computeMs) });
      // Requests of clients come with turns of the event loop.
      await new Promise(setImmediate);
    }
  };
  await Promise.all([timers(), calls()]);
  // A timer may fire early. The picture has a logarithmic axis.
  return Math.max(0.02, median(delays));
}

answerCalls({ run, delayOf });
