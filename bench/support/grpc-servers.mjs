/* An identity model behind the gRPC frontend and in a server of grpc-js, in a thread of its own. */
import { parentPort } from "node:worker_threads";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { batch, Triton } from "@tritonjs/core";
import { addV2Service, grpc } from "@tritonjs/grpc";
import { serviceOf } from "@tritonjs/server";

const triton = new Triton();
const model = triton.bind({
  modelName: "identity",
  inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
  outputs: [{ name: "y", dtype: "UINT8", shape: [-1] }],
  inferFunc: batch(({ x }) => ({ y: x })),
  config: { maxBatchSize: 1 },
});
await model.ready();
const { url } = await grpc({ port: 0 }).start(serviceOf(triton));
const server = new Server();
addV2Service(server, triton);
server.bindAsync("localhost:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  parentPort.postMessage({ http2: url, "grpc-js": `localhost:${port}` });
});
