import { parseArgs } from "node:util";
import { gpu } from "@tritonjs/backends/gpu";
import { batch, Triton } from "@tritonjs/core";

/*
 * PyTriton's quick start: a linear layer from 2 to 3 features. Its tensors have no names, and the callback returns a list.
 * The instance asks for a GPU. On a machine without one it runs on the CPU, and the log says so.
 */

const { values } = parseArgs({ options: { port: { type: "string", default: "8000" } } });

const weights = [
  [0.5, -0.25],
  [1, 0.75],
  [-0.5, 2],
];
const bias = [0.1, 0.2, 0.3];

const triton = new Triton({
  httpPort: Number(values.port),
  allowGrpc: false,
  allowMetrics: false,
  extensions: [gpu({ fallback: "cpu" })],
});
const linear = triton.bind({
  modelName: "Linear",
  inputs: [{ dtype: "FP32", shape: [-1] }],
  outputs: [{ dtype: "FP32", shape: [-1] }],
  inferFunc: batch(({ INPUT_1 }) => {
    const rows = INPUT_1.toArray();
    return [rows.map((row) => weights.map((w, i) => bias[i] + w[0] * row[0] + w[1] * row[1]))];
  }),
  config: { maxBatchSize: 128, instanceGroup: { kind: "KIND_GPU" } },
});
const { addresses } = await triton.serve();
const [{ kind }] = linear.instances();
console.log(`Linear on ${kind} at ${addresses.http.url}`);

process.once("SIGTERM", () => triton.close());
process.once("SIGINT", () => triton.close());
