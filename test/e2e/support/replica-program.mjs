/*
 * A server of its own process with the model `double`, whose requests take `SLEEP_MS`. Prints the port of gRPC, and
 * "answered" with its first answer.
 */
import { batch, Triton } from "@tritonjs/core";

const [port, sleepMs] = process.argv.slice(2).map(Number);
let hasAnswered = false;
const triton = new Triton({
  allowHttp: false,
  allowMetrics: false,
  grpcAddress: "127.0.0.1",
  grpcPort: port,
  exitTimeoutSecs: 0,
});
triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(async ({ x }) => {
    await new Promise((resolve) => setTimeout(resolve, sleepMs));
    if (!hasAnswered) console.log("answered");
    hasAnswered = true;
    return { y: x.data.map((value) => 2 * value) };
  }),
});
const { addresses } = await triton.serve();
console.log(`port ${addresses.grpc.port}.`);
