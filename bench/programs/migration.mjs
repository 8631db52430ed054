/* A model under a steady load whose batcher, function or thread changes while it serves. */
import { performance } from "node:perf_hooks";
import { timesOf } from "../support/blocks.mjs";
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
  /** Requests at random times, with changes meanwhile. */
  async load({ changesPerSecond, ...load }) {
    let isOver = false;
    let changes = 0;
    const changing = (async () => {
      while (!isOver && changesPerSecond > 0) {
        await model.rebind({ inferFunc: funcOf(), config: configs[++changes % configs.length] });
        await new Promise((resolve) => setTimeout(resolve, 1000 / changesPerSecond));
      }
    })();
    const times = await timesOf(() => model.infer({ x }), load);
    isOver = true;
    await changing;
    return { times, changes };
  },
});
