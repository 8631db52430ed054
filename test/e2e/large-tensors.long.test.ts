import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, expect, it } from "vitest";

const ELEMENTS = 25_000_000;
const BYTES = 4 * ELEMENTS;

/** Most memory of typed arrays of this thread since the last request began, looked at while a request runs. */
let most = 0;
const look = () => {
  most = Math.max(most, process.memoryUsage().arrayBuffers);
};

const triton = new Triton({ httpMaxInputSize: 2 * BYTES });
let urls: Readonly<Record<string, string>>;
beforeAll(async () => {
  triton.bind({
    modelName: "mirror",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: (requests) => {
      look();
      return requests.map(({ inputs }) => ({ y: inputs.x }));
    },
    config: { maxBatchSize: 0 },
  });
  await triton.ready();
  const { addresses } = await triton.serve({
    frontends: [http({ port: 0 }), grpc({ port: 0, maxReceiveMessageSize: 2 * BYTES })],
  });
  urls = { http: addresses.http!.url, grpc: addresses.grpc!.url };
});
afterAll(() => triton.close());

it.each(["http", "grpc"])("100 MB come and go over %s without a second copy in memory", async (transport) => {
  const { arrayBuffers: before } = process.memoryUsage();
  most = 0;
  const workerData = { transport, address: urls[transport], elements: ELEMENTS };
  const client = new Worker(new URL("./large-tensor-client.mjs", import.meta.url), { workerData });
  const [isSame] = await once(client, "message");
  look();
  expect(isSame).toBe(true);
  // What the sockets have read, or not sent yet, comes on top of the tensor.
  expect(most - before).toBeLessThan(1.8 * BYTES);
  await client.terminate();
});
