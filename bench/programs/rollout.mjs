/* Two versions of a model, with a rollout that copies requests, or with captures of requests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { percentile } from "../support/pairs.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, rate: captureRate } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { capture } = await importOf(tree, "core", "capture/index");
const directory = mkdtempSync(join(tmpdir(), "tritonjs-captures-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

const triton = new Triton(
  captureRate === undefined ? {} : { tracer: capture({ directory, rate: captureRate }) },
);
const module = new URL("./migrated-model.mjs", import.meta.url);
for (const modelVersion of [1, 2]) {
  triton.bind({
    modelName: "m",
    modelVersion,
    inputs: [{ name: "x", dtype: "FP32", shape: [16] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [16] }],
    inferFunc: module,
    config: { maxBatchSize: 8 },
  });
}
for (const [name, width] of [
  ["small", 16],
  ["large", 16_384],
]) {
  triton.bind({
    modelName: name,
    inputs: [{ name: "x", dtype: "FP32", shape: [width] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [width] }],
    inferFunc: batch(({ x }) => ({ y: x })),
    config: { maxBatchSize: 64 },
  });
}
await triton.ready();
const { http } = await importOf(tree, "http");
const { url } = await http({ port: 0 }).start(triton.service);
const x = [new Float32Array(16)];

answerCalls({
  url: () => url.replace("localhost", "127.0.0.1"),
  /** Requests at random times. */
  async load({ seconds, rate, mode }) {
    const rollout = await triton.rollout("m", {
      from: 1,
      to: 2,
      ...(mode === "shadows" && { shadow: { every: 10 } }),
      verdict: { onFault: "report" },
    });
    const times = [];
    const open = new Set();
    const begin = performance.now();
    for (let due = 0; due < seconds * 1000; due += (-Math.log(1 - Math.random()) * 1000) / rate) {
      const wait = begin + due - performance.now();
      if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
      const since = performance.now();
      const one = triton.infer("m", { x }).then(() => {
        times.push(performance.now() - since);
        open.delete(one);
      });
      open.add(one);
    }
    await Promise.all(open);
    const { shadow } = rollout.verdict();
    rollout.rollBack();
    rollout.remove();
    return { p50: percentile(times, 50), p99: percentile(times, 99), count: times.length, shadow };
  },
});
