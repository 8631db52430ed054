import { batch, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";

/*
 * The life of a server: samples run before the model is ready, and requests in flight are answered before the end.
 *
 *   npm start
 */

const triton = new Triton();
let finish: (() => void) | undefined;
triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(async ({ x }) => {
    console.log(`running ${x.shape[0]} rows with ${x.get(0, 0)}`);
    // The request with 21 runs until the server is told to close.
    if (x.get(0, 0) === 21)
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    return { y: x.data.map((value) => 2 * value) };
  }),
  config: {
    maxBatchSize: 8,
    // One sample with the largest batch and one with a single row.
    modelWarmup: [8, 1].map((batchSize) => ({
      name: `${batchSize} rows`,
      batchSize,
      inputs: { x: { dtype: "FP32", shape: [1], zeroData: true } },
    })),
  },
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
const { url } = addresses.http!;

const ready = async () => (await fetch(`${url}/v2/health/ready`)).status;
const infer = (value: number) =>
  fetch(`${url}/v2/models/double/infer`, {
    method: "POST",
    body: JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], data: [value] }] }),
  });

console.log(`ready: ${await ready()}`);
const inFlight = infer(21);
while (finish === undefined) await new Promise((resolve) => setImmediate(resolve));
// A program calls this on SIGTERM.
const closed = triton.close();
console.log(`ready during the drain: ${await ready()}`);
console.log(`a new request: ${(await infer(1)).status}`);
finish();
const { outputs } = (await (await inFlight).json()) as { outputs: { data: number[] }[] };
console.log(`the request in flight: ${outputs[0]!.data[0]}`);
await closed;
console.log("closed");
