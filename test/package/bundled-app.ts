/** A program that embeds models and names every part of core that needs an optional package. */
export const bundledApp = `
import { batch, Triton } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { python } from "@tritonjs/backends/python";
import { redisCache } from "@tritonjs/operations/redis";
import { sharedMemory } from "./optional-parts.mjs";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { fetchHandler, http, v2Plugin } from "@tritonjs/http";

const show = (what, answer) => answer.then(
  (value) => console.log(what + ":", value),
  (error) => console.log(what + ":", error.code, error.reason),
);

async function main() {
  if (process.argv.includes("--never")) console.log(onnxruntime, python, redisCache, tensorflow, v2Plugin, sharedMemory);
  const triton = new Triton();
  const double = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  await show("in process", double.inferSample({ x: [3] }).then(({ y }) => y.get(0)));
  const handler = fetchHandler(triton);
  await show("fetch", handler(new Request("http://app/v2/models/double/ready")).then(({ status }) => status));
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  await show("over HTTP", fetch(addresses.http.url + "/v2/models/double/ready").then(({ status }) => status));
  const module = new URL("data:text/javascript,export default (requests) => requests.map(({ inputs: { x } }) => ({ y: x }))");
  for (const isolation of ["worker", "process"]) {
    const echo = triton.bind({
      modelName: isolation,
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: module,
      config: { maxBatchSize: 1, instanceGroup: { isolation } },
    });
    await show(isolation, echo.inferSample({ x: [7] }).then(({ y }) => y.get(0)));
  }
  await triton.close();
}
void main();
`;

/** Its second module. */
export const optionalParts = `export * as sharedMemory from "@tritonjs/server/shared-memory";`;

/** What it prints where the workers find their programs. */
export const ALL_WORKS = ["in process: 6", "fetch: 200", "over HTTP: 200", "worker: 7", "process: 7"];

/** What it prints where the workers' programs are not in the bundle. */
export const WORKERS_FAIL = [
  ...ALL_WORKS.slice(0, 3),
  "worker: UNAVAILABLE PACKAGE_BUNDLED",
  "process: UNAVAILABLE PACKAGE_BUNDLED",
];
