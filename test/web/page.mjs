/* The script of the page: what the tests call in the browser. */
import { onnxruntimeWeb } from "@tritonjs/backends/onnxruntime/web";
import { webWorker } from "@tritonjs/backends/web-worker";
import { ModelClient } from "@tritonjs/client/http";
import { hybrid } from "@tritonjs/client/hybrid";
import { batch, sample, WebTriton } from "@tritonjs/core/web";
import * as ort from "onnxruntime-web/wasm";

ort.env.wasm.wasmPaths = "/ort/";
ort.env.wasm.numThreads = 1;

const triton = new WebTriton();
const hybrids = new Map();
let streams = 0;
let bound = 0;

async function bytesOf(name) {
  return (await fetch(`/models/${name}.onnx`)).arrayBuffer();
}

async function bindOnnx(name) {
  const model = await bytesOf(name);
  const inferFunc = await onnxruntimeWeb({ ort, model });
  const handle = triton.bind({ modelName: `${name}-${bound++}`, inferFunc, config: { maxBatchSize: 64 } });
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
      modelName: `count-${streams++}`,
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

  /** Two models that run in web workers, called together. */
  async webWorkers() {
    const open = () => new Worker("/page-worker.js", { type: "module" });
    const iris = triton.bind({
      modelName: "iris-in-workers",
      inferFunc: await webWorker(open),
      config: { instanceGroup: [{ count: 2 }] },
    });
    const calls = [0, 1, 2, 3].map(() => iris.inferSample({ measurements: [5.1, 3.5, 1.4, 0.2] }));
    const answers = await Promise.all(calls);
    const { executionCount, inferenceCount } = iris.statistics();
    const details = iris.instances().map((instance) => instance.details);
    const first = answers.map(({ probabilities }) => probabilities.data[0]);
    const bad = await message(iris.inferSample({ measurements: [1] }));
    return { first, executionCount, inferenceCount, details, bad };
  },

  /** A model of TensorFlow.js, whose script the page has loaded. */
  async tensorflow() {
    const { tf } = window;
    await tf.setBackend("cpu");
    const weights = tf.tensor2d([1, 2, 3, 4], [2, 2]);
    const sizes = [];
    const dense = triton.bind({
      modelName: "dense",
      inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
      inferFunc: batch(async ({ x }) => {
        sizes.push(x.shape[0]);
        const y = tf.tidy(() => tf.matMul(tf.tensor2d(x.data, x.shape), weights));
        const data = await y.data();
        y.dispose();
        return { y: data };
      }),
      config: { maxBatchSize: 8 },
    });
    const answers = await Promise.all([1, 2].map((value) => dense.inferSample({ x: [value, 1] })));
    return { sizes, answers: answers.map(({ y }) => Array.from(y.data)) };
  },

  /** A model on the GPU; undefined without an adapter. */
  async webgpu(name, inputs) {
    if (!(await navigator.gpu?.requestAdapter())) return undefined;
    const file = new URL("/ort/ort.webgpu.bundle.min.mjs", location.origin).href;
    const gpu = await import(file);
    gpu.env.wasm.wasmPaths = "/ort/";
    gpu.env.wasm.numThreads = 1;
    const model = await bytesOf(name);
    const inferFunc = await onnxruntimeWeb({ ort: gpu, model, executionProviders: ["webgpu"] });
    const handle = triton.bind({ modelName: `${name}-gpu`, inferFunc });
    const answers = await Promise.all([0, 1].map(() => handle.inferSample(inputs)));
    const { details } = handle.instances()[0];
    return {
      details,
      answers: answers.map((one) => Object.values(one).map(({ data }) => Array.from(data, Number))),
    };
  },

  /** Runs a model with more threads than the page may have. */
  async threads(name, inputs) {
    ort.env.wasm.numThreads = 4;
    const { outputs } = await this.onnx(name, inputs);
    return { shared: typeof SharedArrayBuffer, isolated: crossOriginIsolated, outputs };
  },

  /** Runs batches until the page is closed. */
  async runForEver(name, inputs) {
    const handle = await bindOnnx(name);
    window.runs = 0;
    for (;;) {
      await Promise.all([0, 1, 2].map(() => handle.inferSample(inputs)));
      window.runs++;
      await new Promise((resolve) => setTimeout(resolve));
    }
  },

  /** Milliseconds of each call of `hybrid`, with the side that it chose. */
  async choices(name, inputs, count) {
    const { local, remote } = hybrids.get(name);
    const calls = [];
    const timed = (side, model) => ({
      async inferBatch(values) {
        const started = performance.now();
        const answer = await model.inferBatch(values);
        calls.push([side, performance.now() - started]);
        return answer;
      },
    });
    const both = hybrid({ local: timed("local", local), remote: timed("remote", remote) });
    for (let i = 0; i < count; i++) await both.inferBatch(inputs);
    return calls.slice(4);
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
