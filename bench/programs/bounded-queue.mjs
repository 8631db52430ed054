/* A worker with batches of 20 ms behind a bounded queue, over HTTP. */

import { serviceOf } from "@tritonjs/server";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, maxBatchSize, maxQueueSize } = programOptions();
const { Triton } = await importOf(tree, "core");
const { http } = await importOf(tree, "http");

const source = `export default async (requests) => {
  await new Promise((resolve) => setTimeout(resolve, 20));
  return requests.map(({ inputs }) => ({ y: inputs.x }));
};`;
const triton = new Triton();
triton.bind({
  modelName: "slow",
  inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
  inferFunc: new URL(`data:text/javascript,${encodeURIComponent(source)}`),
  config: { maxBatchSize, batcher: { defaultQueuePolicy: { maxQueueSize } } },
});
await triton.ready();
const { url } = await http({ port: 0 }).start(serviceOf(triton));

answerCalls({ url: () => url.replace("localhost", "127.0.0.1") });
