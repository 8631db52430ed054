/* An identity model behind both gRPC transports, in a thread of its own, so that a client does not slow it down. */
import { parentPort } from "node:worker_threads";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";

const triton = new Triton();
const model = triton.bind({
  modelName: "identity",
  inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
  outputs: [{ name: "y", dtype: "UINT8", shape: [-1] }],
  inferFunc: batch(({ x }) => ({ y: x })),
  config: { maxBatchSize: 1 },
});
await model.ready();
const urls = {};
for (const transport of ["http2", "grpc-js"]) {
  const { url } = await grpc({ port: 0, transport }).start(triton.service);
  urls[transport] = url;
}
parentPort.postMessage(urls);
