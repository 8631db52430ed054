/*
 * The way of an HTTP request with binary tensors to a model in a worker thread: prints the files whose functions it enters
 * on the server's main thread and in the worker, in their order.
 */
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { clientOf, report } from "./measured.mjs";

const workerWays = [];
const reports = new BroadcastChannel("ways in the worker");
reports.onmessage = ({ data }) => workerWays.push(data);

const triton = new Triton();
const spec = { dtype: "FP32", shape: [-1] };
triton.bind({
  modelName: "echo",
  inputs: [{ name: "x", ...spec }],
  outputs: [{ name: "y", ...spec }],
  inferFunc: new URL("echo.mjs", import.meta.url),
  config: { maxBatchSize: 8 },
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
const client = clientOf("http-client.mjs", `${addresses.http.url}/v2/models/echo/infer`);
await client.ask(200);
await report(() => client.ask(1), workerWays);
await client.end();
reports.close();
await triton.close();
