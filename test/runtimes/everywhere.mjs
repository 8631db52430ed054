/* What a program does on each runtime: a line of output for each step, or the error's code, reason and text. */
import { fileURLToPath } from "node:url";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { batch, sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";

const iris = fileURLToPath(new URL("../../examples/quickstart/iris/iris.onnx", import.meta.url));
const INT32 = { dtype: "INT32", shape: [1] };

async function step(name, run) {
  const { code, reason, message } = await run().then(
    (result) => ({ message: result }),
    (error) => error,
  );
  console.log([name, code, reason, message].filter((part) => part !== undefined).join(" "));
}

const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
const bind = (modelName, inferFunc, instanceGroup = {}) =>
  triton.bind({
    modelName,
    inputs: [{ name: "x", ...INT32 }],
    outputs: [{ name: "y", ...INT32 }],
    inferFunc,
    config: { instanceGroup },
  });

for (const isolation of ["inline", "worker", "process"]) {
  await step(isolation, async () => {
    const model = bind(isolation, new URL("same.mjs", import.meta.url), { isolation });
    return (await model.inferSample({ x: [7] })).y.get(0);
  });
}
for (const [engine, isolation] of [
  ["worker", "worker"],
  ["worker", "process"],
  ["native", undefined],
  ["wasm", "worker"],
  ["wasm", "process"],
]) {
  await step(`onnx ${engine} ${isolation ?? "inline"}`, async () => {
    const model = triton.bind({
      modelName: `iris-${engine}-${isolation}`,
      inferFunc: onnxruntime({ model: iris, engine, intraOpNumThreads: 2 }),
      config: { instanceGroup: isolation === undefined ? {} : { isolation } },
    });
    const { probabilities } = await model.inferSample({ measurements: [5.1, 3.5, 1.4, 0.2] });
    return probabilities.data[0].toFixed(4);
  });
}
await step("stream", async () => {
  const count = bind(
    "count",
    sample(async function* ({ x }) {
      for (let i = 0; i < x.get(0); i++) yield { y: [i] };
    }),
  );
  const got = [];
  for await (const { y } of count.stream({ x: [3] })) got.push(y.get(0));
  return got.join();
});

const infer = async ({ http, grpc }) => {
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "INT32", shape: [1, 1], data: [4] }] });
  const answer = await (await fetch(`${http.url}/v2/models/worker/infer`, { method: "POST", body })).json();
  const client = new InferenceServerClient(`127.0.0.1:${grpc.port}`);
  const inputs = { x: { datatype: "INT32", shape: [1, 1], data: [5] } };
  const result = await client.infer("worker", { inputs });
  client.close();
  return `${answer.outputs[0].data[0]} ${result.elements("y", "INT32")[0]}`;
};
const frontends = () => [http({ port: 0 }), grpc({ port: 0 })];
await step("frontend threads", async () => {
  const other = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  try {
    other.bind({
      modelName: "worker",
      inputs: [{ name: "x", ...INT32 }],
      outputs: [{ name: "y", ...INT32 }],
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    return await infer((await other.serve({ frontends: frontends(), frontendThreads: 2 })).addresses);
  } finally {
    await other.close();
  }
});
await step("served", async () => infer((await triton.serve({ frontends: frontends() })).addresses));
await step("shared memory", async () => {
  const { SharedMemoryRegion } = await import("@tritonjs/server/shared-memory");
  const region = await SharedMemoryRegion.create(`/tritonjs-everywhere-${process.pid}`, 64);
  region.destroy();
  return "created and destroyed";
});
await triton.close();
console.log("closed");
// Deno and Bun end by themselves too; a kept connection of `fetch` may hold them for some seconds.
process.exit();
