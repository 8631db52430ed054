/*
 * A replica over HTTP with two models: `wait` takes a time in which the CPU is idle, as with an accelerator, and `echo`
 * costs no more than the request itself.
 */

import { serviceOf } from "@tritonjs/server";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, waitMs } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { http } = await importOf(tree, "http");

const triton = new Triton();
const specs = {
  inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
};
const wait = batch(async ({ x }) => {
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  return { y: x };
});
// One row in each batch: with larger batches the rate depends on which requests happen to meet.
triton.bind({ modelName: "wait", ...specs, inferFunc: wait, config: { maxBatchSize: 1 } });
triton.bind({
  modelName: "echo",
  ...specs,
  inferFunc: batch(({ x }) => ({ y: x })),
  config: { maxBatchSize: 4 },
});
await triton.ready();
const { url } = await http({ port: 0 }).start(serviceOf(triton));

answerCalls({ url: () => url.replace("localhost", "127.0.0.1") });
