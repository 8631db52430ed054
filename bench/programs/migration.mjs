/* A model under a steady load whose batcher, function or thread changes while it serves. */
import { performance } from "node:perf_hooks";
import { percentile } from "../support/pairs.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, kind } = programOptions();
const { batch, Triton } = await importOf(tree, "core");

const module = new URL("./migrated-model.mjs", import.meta.url);
/** Takes half a millisecond. */
const inline = () =>
  batch(({ x }) => {
    const until = performance.now() + 0.5;
    while (performance.now() < until);
    return { y: x };
  });
const funcOf = () => (kind === "worker" ? module : inline());
const configs = [
  { maxBatchSize: 8 },
  { maxBatchSize: 16, batcher: { maxQueueDelayMicroseconds: 200 } },
  { maxBatchSize: 8, batcher: { preferredBatchSize: [4] } },
];
const triton = new Triton();
const model = triton.bind({
  modelName: "m",
  inputs: [{ name: "x", dtype: "FP32", shape: [16] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [16] }],
  inferFunc: funcOf(),
  config: configs[0],
});
await model.ready();
const x = [new Float32Array(16)];

answerCalls({
  /** 200 requests a second, at random times, with changes meanwhile. */
  async load({ seconds, changesPerSecond }) {
    const times = [];
    const open = new Set();
    const begin = performance.now();
    let isOver = false;
    let changes = 0;
    const changing = (async () => {
      while (!isOver && changesPerSecond > 0) {
        await model.rebind({ inferFunc: funcOf(), config: configs[++changes % configs.length] });
        await new Promise((resolve) => setTimeout(resolve, 1000 / changesPerSecond));
      }
    })();
    for (let due = 0; due < seconds * 1000; due += -Math.log(1 - Math.random()) * 5) {
      const wait = begin + due - performance.now();
      if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
      const since = performance.now();
      const one = model.infer({ x }).then(() => {
        times.push(performance.now() - since);
        open.delete(one);
      });
      open.add(one);
    }
    await Promise.all(open);
    isOver = true;
    await changing;
    return { p50: percentile(times, 50), p99: percentile(times, 99), count: times.length, changes };
  },
});
