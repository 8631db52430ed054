/** A program that uses the packages as a newcomer would; runs in a project of its own. */
export const servingProgram = `
import { batch, Triton } from "@tritonjs/core";

const triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
const double = triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});
const { y } = await double.inferSample({ x: [3] });
console.log("in process:", y.get(0));

const { addresses } = await triton.serve();
console.log("frontends:", Object.keys(addresses).sort().join(" "));
const response = await fetch(addresses.http.url + "/v2/models/double/infer", {
  method: "POST",
  body: JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], data: [4] }] }),
});
console.log("over HTTP:", (await response.json()).outputs[0].data[0]);
await triton.close();
console.log("closed");
`;

/** A program that serves a model and measures it with the installed command. */
export const measuringProgram = `
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Triton } from "@tritonjs/core";

const triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
triton.bind({
  modelName: "same",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
});
const { addresses } = await triton.serve();
const args = ["--no-install", "tritonjs", "perf", "-m", "same", "--request-count", "40", "--assert", "errors==0"];
for (const [url, protocol] of [[addresses.http.url, "http"], ["127.0.0.1:" + addresses.grpc.port, "grpc"]]) {
  const { stdout } = await promisify(execFile)("npx", [...args, "-u", url, "-i", protocol], {
    shell: process.platform === "win32",
  });
  console.log(protocol + ":", /Request count: \\d+/.exec(stdout)[0]);
}
await triton.close();
`;

/** A program whose model runs in each kind of isolation. */
export const workersProgram = `
import { Triton, TritonError } from "@tritonjs/core";
import { TritonError as ErrorOfTensors } from "@tritonjs/protocol";

console.log("one class:", TritonError === ErrorOfTensors);
const module = new URL(\`data:text/javascript,
  export default (requests) => requests.map(({ inputs: { x } }) => {
    if (x.data[0] < 0) throw new Error("no");
    return { y: x };
  });
\`);
// The stack of the error goes to the log.
const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
for (const isolation of ["inline", "worker", "process"]) {
  const model = triton.bind({
    modelName: isolation,
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: module,
    config: { maxBatchSize: 1, instanceGroup: { isolation } },
  });
  const failed = await model.inferSample({ x: [-1] }).catch((error) => error instanceof TritonError && error.code);
  const { y } = await model.inferSample({ x: [7] });
  console.log(isolation + ":", failed, y.get(0));
}
await triton.close();
`;

/** A program that is only type-checked: the types of a binding follow from its specifications. */
export const consumer = `
import { batch, type ModelHandle, sample, Triton, TritonError } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { grpc } from "@tritonjs/grpc";
import { http, metrics } from "@tritonjs/http";

await using triton = new Triton({ id: "consumer" });
const pair = triton.bind({
  modelName: "pair",
  inputs: [
    { name: "x", dtype: "FP32", shape: [2] },
    { name: "tokens", dtype: "INT64", shape: [-1], optional: true },
  ],
  outputs: [{ name: "y", dtype: "FP64", shape: [1] }],
  inferFunc: batch(({ x, tokens }, { signal }) => {
    const floats: Float32Array = x.data;
    const wide: BigInt64Array | undefined = tokens?.data;
    return { y: signal.aborted || wide === undefined ? [0] : Float64Array.from(floats) };
  }),
});
const { y } = await pair.inferSample({ x: [1, 2] }, { timeoutMs: 1 });
const doubles: Float64Array = y.data;

triton.bind({
  modelName: "wrong",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  // @ts-expect-error There is no output z.
  inferFunc: sample(({ x }) => ({ z: x })),
});

const iris = triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
const known: Pick<ModelHandle<[], []>, "name" | "version"> = iris;
const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 }), metrics()] });
const url: string | undefined = addresses.http?.url;
const error: unknown = new Error();
if (TritonError.is(error) && error.code === "NOT_FOUND") console.log(known, url, doubles, error.message);
export {};
`;

/** A CommonJS module that is only type-checked. */
export const commonJsConsumer = `
import core = require("@tritonjs/core");
import http = require("@tritonjs/http");

const triton: core.Triton = new core.Triton();
export const frontends = [http.http({ port: 0 })];
export const closed: Promise<void> = triton.close();
`;
