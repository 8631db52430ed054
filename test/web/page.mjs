/* The script of the page: what the tests call in the browser. */
import { onnxruntimeWeb } from "@tritonjs/backends/onnxruntime/web";
import { ModelClient } from "@tritonjs/client/http";
import { batch, hybrid, sample, WebTriton } from "@tritonjs/core/web";
import * as ort from "onnxruntime-web/wasm";

ort.env.wasm.wasmPaths = "/ort/";
ort.env.wasm.numThreads = 1;

const triton = new WebTriton();
const hybrids = new Map();

async function bytesOf(name) {
  return (await fetch(`/models/${name}.onnx`)).arrayBuffer();
}

async function bindOnnx(name) {
  const model = await bytesOf(name);
  const handle = triton.bind({ modelName: name, inferFunc: await onnxruntimeWeb({ ort, model }) });
  await handle.ready();
  return handle;
}

const message = (promise) =>
  promise.then(
    () => "done",
    ({ code, message }) => `${code} ${message}`,
  );

window.tests = {
  /** Calls of five components in one event, and the batches that they made. */
  async components() {
    const sizes = [];
    const double = triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(({ x }) => {
        sizes.push(x.shape[0]);
        return { y: x.data.map((value) => 2 * value) };
      }),
      config: { maxBatchSize: 8 },
    });
    const answers = await Promise.all([1, 2, 3, 4, 5].map((x) => double.inferSample({ x: [x] })));
    return { sizes, answers: answers.map(({ y }) => y.get(0)) };
  },

  /** A stream of a generator, which ends when the page leaves it. */
  async stream() {
    const tokens = [];
    const count = triton.bind({
      modelName: "count",
      inputs: [{ name: "n", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "i", dtype: "INT32", shape: [1] }],
      inferFunc: sample(async function* ({ n }) {
        for (let i = 0; i < n.get(0); i++) yield { i: [i] };
      }),
    });
    for await (const { i } of count.stream({ n: [3] })) tokens.push(i.get(0));
    return tokens;
  },

  async onnx(name, inputs) {
    const handle = await bindOnnx(name);
    const answer = await handle.inferSample(inputs);
    const { executionCount, inferenceCount } = handle.statistics();
    const outputs = Object.entries(answer).map(([key, { data }]) => [key, Array.from(data, Number)]);
    return {
      outputs: Object.fromEntries(outputs),
      executionCount,
      inferenceCount,
      details: handle.instances()[0].details,
    };
  },

  async badModel() {
    return message(onnxruntimeWeb({ ort, model: new Uint8Array(100) }));
  },

  /** A model here and on the server. */
  async openHybrid(name) {
    const local = await bindOnnx(name);
    const remote = new ModelClient(location.origin, name);
    hybrids.set(name, { local, remote, both: hybrid({ local, remote }) });
  },

  async callHybrid(name, inputs, side = "both") {
    const answer = await hybrids.get(name)[side].inferSample(inputs);
    return Object.values(answer).map(({ data }) => Array.from(data, Number));
  },

  /** Milliseconds of calls. */
  async time(name, inputs, count, side = "both") {
    const started = performance.now();
    for (let i = 0; i < count; i++) await hybrids.get(name)[side].inferSample(inputs);
    return (performance.now() - started) / count;
  },

  status: (name) => hybrids.get(name).both.status(),
  close: () => triton.close(),
};
