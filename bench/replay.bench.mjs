/*
 * Does `tritonjs replay` predict what really happens? Serves a model in a worker under Poisson load, once for each
 * configuration, and records it. Then it replays the first recording with every configuration, and compares.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { readPrototxt } from "@tritonjs/core/config";
import { readTrace, recordingOf, replay } from "@tritonjs/tools";
import { machineNote, saveResult } from "./support/save-result.mjs";
import { short } from "./support/statistics.mjs";

const SECONDS = Number(process.env.BENCH_SECONDS ?? 10);
const RATE = 300;

/** Configurations as `bind` and `config.pbtxt` spell them. The first one is recorded. */
const CONFIGS = {
  "eager, 8": {
    bound: { maxBatchSize: 8, batcher: {} },
    text: "max_batch_size: 8 dynamic_batching { }",
  },
  "delay of 5 ms, 8": {
    bound: { maxBatchSize: 8, batcher: { maxQueueDelayMicroseconds: 5000 } },
    text: "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 5000 }",
  },
  "eager, 2": {
    bound: { maxBatchSize: 2, batcher: {} },
    text: "max_batch_size: 2 dynamic_batching { }",
  },
};

/** Serves Poisson load with a configuration, and returns what was recorded. */
async function record(config) {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-replay-"));
  const file = join(folder, "trace.json");
  const triton = new Triton({ trace: { level: "TIMESTAMPS", rate: 1, file } });
  const model = triton.bind({
    modelName: "busy",
    inputs: [{ name: "x", dtype: "UINT8", shape: [1] }],
    outputs: [{ name: "y", dtype: "UINT8", shape: [1] }],
    inferFunc: new URL("./programs/busy-model.mjs", import.meta.url),
    config,
  });
  await model.ready();
  const end = performance.now() + SECONDS * 1000;
  let next = performance.now();
  const open = [];
  while (next < end) {
    next += (-Math.log(1 - Math.random()) * 1000) / RATE;
    const wait = next - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    open.push(model.inferSample({ x: [1] }));
  }
  await Promise.all(open);
  await triton.close();
  try {
    return recordingOf(await readTrace([file]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const recordings = {};
for (const [name, { bound }] of Object.entries(CONFIGS)) recordings[name] = await record(bound);
const [first] = Object.keys(CONFIGS);
const { predictions } = await replay(
  recordings[first],
  Object.entries(CONFIGS).map(([name, { text }]) => ({
    name,
    config: readPrototxt(`name: "busy" backend: "x" instance_group { count: 1 } ${text}`),
  })),
);
const rows = {};
for (const { name, figures } of predictions) {
  const { recorded } = await replay(recordings[name], []);
  rows[name] = {
    "p50, measured": short(recorded.latencyMs.p50),
    "p50, predicted": short(figures.latencyMs.p50),
    "p99, measured": short(recorded.latencyMs.p99),
    "p99, predicted": short(figures.latencyMs.p99),
    "rows, measured": short(recorded.meanBatchRows),
    "rows, predicted": short(figures.meanBatchRows),
  };
}
console.log(machineNote());
console.table(rows);
saveResult("replay", { seconds: SECONDS, rate: RATE, recorded: first, rows });
