/*
 * Does `tritonjs replay` predict what really happens? Serves a model in a worker under Poisson load below its capacity,
 * in turns for each configuration, and records every run. Each run is replayed with its own configuration: that is the
 * prediction for the recorded one. The runs of the first configuration are also replayed with the other ones, and
 * compared with what these did. A busy machine changes between two runs, so the medians of several runs count.
 *
 * Exit code 1 if a median difference of the recorded configuration exceeds 15%.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { readTrace, recordingOf, replay } from "@tritonjs/perf";
import { readPrototxt } from "@tritonjs/repository/config";
import { median, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const SECONDS = Number(process.env.BENCH_SECONDS ?? 7);
const RUNS = Number(process.env.BENCH_RUNS ?? 5);
/** Requests a second. A batch takes 2 ms, and 0.5 ms for each row, so batches of 8 take 1333 a second. */
const RATE = 300;
/** Largest median difference of a figure of the recorded configuration, as a share. */
const LIMIT = 0.15;
const FIGURES = ["p50", "p99", "mean"];

/** Configurations as `bind` and `config.pbtxt` spell them. The first one is also replayed with the others. */
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

const configs = Object.entries(CONFIGS).map(([name, { text }]) => ({
  name,
  config: readPrototxt(`name: "busy" backend: "x" instance_group { count: 1 } ${text}`),
}));
const [first] = Object.keys(CONFIGS);
const pairs = new Map();
/** Keeps what was recorded and predicted for a configuration. */
function keep(name, recorded, predicted) {
  pairs.set(name, [...(pairs.get(name) ?? []), { recorded, predicted }]);
}

for (let run = 1; run <= RUNS; run++) {
  const recordings = {};
  for (const [name, { bound }] of Object.entries(CONFIGS)) recordings[name] = await record(bound);
  const recorded = {};
  for (const config of configs) {
    const { name } = config;
    const own = await replay(recordings[name], [config]);
    recorded[name] = own.recorded;
    keep(`${name}: recorded`, own.recorded, own.predictions[0].figures);
  }
  const others = await replay(recordings[first], configs.slice(1));
  for (const { name, figures } of others.predictions) keep(`${name}: from ${first}`, recorded[name], figures);
  for (const name of Object.keys(CONFIGS)) {
    const { recorded: one, predicted } = pairs.get(`${name}: recorded`).at(-1);
    const texts = FIGURES.map((figure) => {
      const [real, told] = [one.latencyMs[figure], predicted.latencyMs[figure]];
      return `${figure} ${short(real)} ms recorded, ${short(told)} predicted, ${percent(told / real - 1)}`;
    });
    console.log(`run ${run}, ${name}: ${texts.join("; ")}`);
  }
}

function percent(share) {
  return `${share > 0 ? "+" : ""}${(share * 100).toFixed(1)}%`;
}

const cases = {};
const missed = [];
for (const [name, all] of pairs) {
  cases[name] = {};
  for (const figure of FIGURES) {
    const recorded = all.map((one) => one.recorded.latencyMs[figure]);
    const predicted = all.map((one) => one.predicted.latencyMs[figure]);
    const difference = median(all.map((_, i) => Math.abs(predicted[i] / recorded[i] - 1)));
    cases[name][`${figure}, recorded`] = short(median(recorded));
    cases[name][`${figure}, predicted`] = short(median(predicted));
    cases[name][`${figure}, difference %`] = short(100 * difference);
    if (name.endsWith(": recorded") && !(difference <= LIMIT)) missed.push(`${figure} of '${name}'`);
  }
}
report("replay", {
  rows: cases,
  figures: { seconds: SECONDS, runs: RUNS, rate: RATE, from: first },
  document: "performance-tools.md",
  note:
    `Latencies in ms: medians of ${RUNS} runs of ${SECONDS} s with ${RATE} requests a second (Poisson). The difference ` +
    "is the median of the differences of single runs. The last rows compare with other runs, at another speed of the machine.",
});
if (missed.length > 0) {
  console.error(`missed the goal of ${100 * LIMIT}%: ${missed.join(", ")}`);
  process.exitCode = 1;
}
