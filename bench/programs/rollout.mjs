/* Two versions of a model, with a rollout that copies requests, or with captures of requests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serviceOf } from "@tritonjs/server";
import { timesOf } from "../support/blocks.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, rate: captureRate } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { capture } = await importOf(tree, "operations", "capture/index");
const { rollouts } = await importOf(tree, "operations", "rollout/index");
const directory = mkdtempSync(join(tmpdir(), "tritonjs-captures-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

const updates = rollouts();
const triton = new Triton({
  extensions: captureRate === undefined ? [updates] : [updates, capture({ directory, rate: captureRate })],
});
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
const { url } = await http({ port: 0 }).start(serviceOf(triton));
const x = [new Float32Array(16)];

answerCalls({
  url: () => url.replace("localhost", "127.0.0.1"),
  /** Requests at random times. */
  async load({ mode, ...load }) {
    const rollout = await updates.start("m", {
      from: 1,
      to: 2,
      ...(mode === "shadows" && { shadow: { every: 10 } }),
      verdict: { onFault: "report" },
    });
    const cpu = process.cpuUsage();
    const times = await timesOf(() => triton.infer("m", { x }), load);
    const { user, system } = process.cpuUsage(cpu);
    const { shadow } = rollout.verdict();
    rollout.rollBack();
    rollout.remove();
    return { times, cpu: (user + system) / times.length, shadow };
  },
});
