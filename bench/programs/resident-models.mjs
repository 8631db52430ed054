/*
 * Serves 1,000 small ONNX models, of which few are in memory at a time, and measures requests that find their model in
 * memory (hits) and requests that load it (misses).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { serviceOf } from "@tritonjs/server";
import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";
import { percentile } from "../support/pairs.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf, withRepository } from "../support/tree.mjs";

const { tree, models = 1000, budgetMb, width = 64 } = programOptions();
const { Triton } = await importOf(tree, "core");
const { modelsOnDemand } = await importOf(tree, "operations", "on-demand/index");
const folder = mkdtempSync(join(tmpdir(), "tritonjs-resident-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const weights = (name, seed, ...dims) => ({
  name,
  dims,
  data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(seed + i) / 8),
});
const value = (name, ...dims) => ({ name, elemType: "FLOAT", dims: ["batch", ...dims] });
const gemm = (input, layer, output) => ({
  op: "Gemm",
  inputs: [input, `w${layer}`, `b${layer}`],
  outputs: [output],
});

for (let i = 0; i < models; i++) {
  const directory = join(folder, `m${i}`, "1");
  mkdirSync(directory, { recursive: true });
  const bytes = onnxModel({
    name: `m${i}`,
    opset: 13,
    inputs: [value("x", width)],
    outputs: [value("y", 4)],
    nodes: [gemm("x", 1, "g"), { op: "Relu", inputs: ["g"], outputs: ["h"] }, gemm("h", 2, "y")],
    initializers: [
      weights("w1", i, width, width),
      weights("b1", i, width),
      weights("w2", i, width, 4),
      { name: "b2", dims: [4], data: Float32Array.from([i, 0, 0, 0]) },
    ],
  });
  writeFileSync(join(directory, "model.onnx"), bytes);
}

const quiet = { error: console.error, warn() {}, info() {}, debug() {} };
const start = performance.now();
const served = await withRepository(tree, { modelRepository: folder });
const triton = new Triton({
  ...served,
  logger: quiet,
  extensions: [
    ...(served.extensions ?? []),
    ...(budgetMb === undefined
      ? []
      : [modelsOnDemand({ loadOnDemand: true, modelMemoryBudgetMb: budgetMb })]),
  ],
});
await triton.ready();
const startMs = performance.now() - start;

const zero = { x: new Float32Array(width), shape: undefined };
const residentOf = (name) => serviceOf(triton).model(name, "").residence?.isResident ?? true;
let failed = 0;

async function ask(i, hits, misses) {
  const name = `m${i}`;
  const into = residentOf(name) ? hits : misses;
  const since = performance.now();
  try {
    const { y } = await triton.infer(name, { x: [zero.x] });
    if (Math.round(y.data[0] - i) !== 0 && Math.abs(y.data[0] - i) > 8) failed++;
  } catch (error) {
    failed++;
    console.error(error.message);
  }
  into.push(performance.now() - since);
}

const peakRss = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
const figures = (times) =>
  times.length === 0 ? {} : { count: times.length, p50: percentile(times, 50), p99: percentile(times, 99) };

answerCalls({
  startMs: () => startMs,
  /** Sends requests at a rate: to the first model alone, or to all, of which few get most. */
  async load({ seconds, rate, skew }) {
    const [hits, misses] = [[], []];
    let state = 1;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const weightsOf = Array.from({ length: models }, (_, i) => (i + 1) ** -skew);
    let sum = 0;
    const cumulative = weightsOf.map((weight) => (sum += weight));
    const pick = () => {
      const at = random() * sum;
      let [low, high] = [0, models - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (cumulative[middle] < at) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const open = new Set();
    const begin = performance.now();
    for (let due = 0; due < seconds * 1000; due += (-Math.log(1 - random()) * 1000) / rate) {
      const wait = begin + due - performance.now();
      if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
      const one = ask(skew === undefined ? 0 : pick(), hits, misses).finally(() => open.delete(one));
      open.add(one);
    }
    await Promise.all(open);
    return { hits: figures(hits), misses: figures(misses), failed, peakMb: peakRss() };
  },
  async touchAll() {
    const [hits, misses] = [[], []];
    for (let i = 0; i < models; i++) await ask(i, hits, misses);
    return { hits: figures(hits), misses: figures(misses), failed, peakMb: peakRss() };
  },
});
