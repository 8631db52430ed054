/*
 * ONNX models by the engine `wasm` next to the native engine `worker`, one thread each, by kinds of networks: how many
 * times as long does a batch take, and how long do the first batches, whose code V8 has not optimised yet?
 */

import { readFileSync } from "node:fs";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import ndarray from "ndarray";
import { onnxModel } from "../examples/onnx-writer/dist/onnx-writer.js";
import { randomConformer } from "./support/conformer.mjs";
import { short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const ENGINES = ["worker", "wasm"];
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 4);
const ROUND_MS = 500;
const FIRST = 3;

const random = (count, scale) => Float32Array.from({ length: count }, () => (2 * Math.random() - 1) * scale);
const sizeOf = (dims) => dims.reduce((product, dim) => product * dim, 1);
const value = (name, dims) => ({ name, elemType: "FLOAT", dims });

/** Layers of one kind with ReLU between them, from `x` to `y`, and an input. Weights keep the size of the numbers. */
function stack(shape, depth, layer, weightDims) {
  const scale = Math.sqrt(6 / sizeOf(weightDims.slice(1)));
  const nodes = [];
  const initializers = [];
  for (let i = 0; i < depth; i++) {
    nodes.push(...layer(i === 0 ? "x" : `r${i - 1}`, `w${i}`, `h${i}`));
    nodes.push({ op: "Relu", inputs: [`h${i}`], outputs: [i === depth - 1 ? "y" : `r${i}`] });
    initializers.push({ name: `w${i}`, dims: weightDims, data: random(sizeOf(weightDims), scale) });
  }
  const [inputs, outputs] = [[value("x", shape)], [value("y", shape)]];
  const model = onnxModel({ name: "stack", opset: 13, inputs, outputs, nodes, initializers });
  return { model, inputs: { x: ndarray(random(sizeOf(shape), 1), shape) } };
}

const dense = (rows) =>
  stack([rows, 1024], 6, (x, w, y) => [{ op: "MatMul", inputs: [x, w], outputs: [y] }], [1024, 1024]);

function convolutions(shape, kernel, group = 1) {
  const around = (count) => ({ ints: new Array(count).fill(kernel >> 1) });
  const attributes = { kernel_shape: { ints: [kernel, kernel] }, pads: around(4), group: { int: group } };
  const layer = (x, w, y) => [{ op: "Conv", inputs: [x, w], outputs: [y], attributes }];
  return stack(shape, 6, layer, [shape[1], shape[1] / group, kernel, kernel]);
}

/** Three seconds of speech. */
const speech = (model) => ({
  model,
  inputs: {
    speech: ndarray(random(300 * 80, 10), [1, 300, 80]),
    speech_lengths: ndarray(Int32Array.of(300), [1]),
  },
});

const CASES = {
  "6 dense layers of 1024, 1 row": dense(1),
  "6 dense layers of 1024, 16 rows": dense(16),
  "6 dense layers of 1024, 128 rows": dense(128),
  "6 convolutions of 3x3, 32 channels, 56x56, 4 pictures": convolutions([4, 32, 56, 56], 3),
  "6 convolutions of 1x1, 128 channels, 28x28": convolutions([1, 128, 28, 28], 1),
  "6 convolutions of 3x3, 128 channels each by itself, 56x56": convolutions([1, 128, 56, 56], 3, 128),
  "conformer of 12 blocks, 3 s of speech": speech(randomConformer()),
  "small speech network in 8 bits, 3 s": speech(
    readFileSync(new URL("../examples/speech-recognition/models/encoder/1/encoder.onnx", import.meta.url)),
  ),
};

/** Milliseconds of the shortest of some batches, or of those that run in some time. */
async function shortest(handle, inputs, { batches = 1, ms = 0 }) {
  const until = performance.now() + ms;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < batches || performance.now() < until; i++) {
    const started = performance.now();
    await handle.infer(inputs);
    least = Math.min(least, performance.now() - started);
  }
  return least;
}

const logger = { error() {}, warn() {}, info() {}, debug() {} };
const rows = {};
const figures = {};
for (const [name, { model, inputs }] of Object.entries(CASES)) {
  const triton = new Triton({ logger });
  const best = {};
  const first = {};
  const handles = {};
  for (const engine of ENGINES) {
    const inferFunc = onnxruntime({ model, engine, intraOpNumThreads: 1 });
    handles[engine] = triton.bind({ modelName: engine, inferFunc, config: { batching: false } });
    await handles[engine].ready();
    first[engine] = await shortest(handles[engine], inputs, { batches: FIRST });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const engine of ENGINES) {
      const ms = await shortest(handles[engine], inputs, { ms: ROUND_MS });
      best[engine] = Math.min(best[engine] ?? Number.POSITIVE_INFINITY, ms);
    }
  }
  await triton.close();
  figures[name] = short(best.wasm / best.worker);
  rows[name] = {
    "`worker`, ms": short(best.worker),
    "`wasm`, ms": short(best.wasm),
    ratio: figures[name],
    "first batches of `wasm`, ms": short(first.wasm),
  };
}

report("onnx-wasm", {
  rows,
  figures,
  document: "onnx-engines.md",
  note: `One thread each. The shortest batch of ${ROUNDS} rounds, and of the first ${FIRST} batches: other programs ran beside them.`,
});
