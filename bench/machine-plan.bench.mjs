/*
 * One plan for all models of a machine (docs/deadlines.md): three ONNX models, one instance each, take requests at random,
 * each model with a limit of its own. Once their batchers are independent and eager, as by default, and once the plan
 * (`rateLimit: "deadlines"`) chooses the next batch over all models. The models really run each batch, in processes, and
 * it takes its processor time on the clock of a machine with two cores: so other programs decide little. Both run in turn
 * with the same requests. Prints the share of each model's requests in their limit, and the largest load at which all
 * models have 99%. BENCH_LOADS names the loads as shares of what both cores can do in full batches.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton, TritonError } from "@tritonjs/core";
import { onnxModels } from "./support/onnx-models.mjs";
import { median } from "./support/pairs.mjs";
import { timedOnnx, WorkClock } from "./support/work-clock.mjs";

const CORES = 2;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 6);
const LOADS = (process.env.BENCH_LOADS ?? "0.6,0.65,0.7,0.75,0.8,0.85,0.9").split(",").map(Number);
const MAX_BATCH = 8;
/** Limits as multiples of the time of a full batch. */
const MODELS = { deepMlp: 2.5, denseConv: 4, deepConv: 10 };

const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
const files = Object.keys(MODELS).map((name) => {
  const { bytes, shape } = onnxModels[name]();
  const file = join(folder, `${name}.onnx`);
  writeFileSync(file, bytes);
  return { name, file, shape };
});

function serve(planned) {
  const clock = new WorkClock(CORES);
  const plan = { rateLimit: "deadlines", rateLimitResources: [{ name: "cores", count: CORES }] };
  const triton = new Triton({ clock, ...(planned && plan) });
  const models = files.map(({ name, file, shape }) => {
    const { inferFunc, close } = timedOnnx(file, clock);
    const handle = triton.bind({
      modelName: name,
      inputs: [{ name: "x", dtype: "FP32", shape }],
      outputs: [{ name: "y", dtype: "FP32", shape: [10] }],
      inferFunc,
      config: { maxBatchSize: MAX_BATCH, batcher: planned ? { deadlines: true } : {} },
    });
    const row = new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(0.5);
    return { handle, row, close };
  });
  return { triton, clock, models, planned };
}

/** Milliseconds of a full batch of each model. Teaches the batchers too. */
async function measured({ clock, models }) {
  const all = [];
  for (const { handle, row } of models) {
    const times = [];
    for (let i = 0; i < 16; i++) {
      const start = clock.now();
      const rows = i % 2 === 0 ? MAX_BATCH : 1 + ((3 * i) % MAX_BATCH);
      let open = rows;
      for (let n = 0; n < rows; n++) handle.inferSample({ x: row }).finally(() => open--);
      await clock.runUntil(() => open === 0);
      if (rows === MAX_BATCH && i > 3) times.push(clock.now() - start);
    }
    all.push(median(times));
  }
  return all;
}

/** Sends the requests. Resolves with the share of each model in its limit. */
async function run({ clock, models, planned }, arrivals, limits) {
  const inTime = models.map(() => 0);
  const sent = models.map(() => 0);
  const begin = clock.now();
  let left = arrivals.length;
  for (const { atMs, kind } of arrivals) {
    clock.setTimer(atMs, () => {
      const { handle, row } = models[kind];
      const limitMs = limits[kind];
      sent[kind]++;
      const options = planned ? { queueTimeoutMicroseconds: Math.ceil(1000 * limitMs) } : {};
      handle
        .inferSample({ x: row }, options)
        .then(
          () => {
            if (clock.now() - begin - atMs <= limitMs) inTime[kind]++;
          },
          (error) => {
            if (!TritonError.is(error)) throw error;
          },
        )
        .finally(() => left--);
    });
  }
  await clock.runUntil(() => left === 0);
  return inTime.map((count, i) => count / sent[i]);
}

function arrivalsOf(rates) {
  const all = rates.flatMap((perMs, kind) => {
    const own = [];
    let atMs = 0;
    while (atMs < 1000 * SECONDS) {
      own.push({ atMs, kind });
      atMs += -Math.log(1 - Math.random()) / perMs;
    }
    return own;
  });
  return all.sort((a, b) => a.atMs - b.atMs);
}

try {
  const settings = { eager: serve(false), planned: serve(true) };
  const largest = { eager: 0, planned: 0 };
  for (const load of LOADS) {
    const full = await measured(settings.eager);
    await measured(settings.planned);
    const limits = Object.values(MODELS).map((multiple, i) => multiple * full[i]);
    const arrivals = arrivalsOf(full.map((ms) => (load * CORES * MAX_BATCH) / (files.length * ms)));
    for (const [name, setting] of Object.entries(settings)) {
      const shares = await run(setting, arrivals, limits);
      console.log(
        `load ${load}: ${name} ${shares.map((share) => `${(100 * share).toFixed(1)}%`).join(", ")} in ` +
          `${limits.map((ms) => ms.toFixed(0)).join(", ")} ms`,
      );
      if (Math.min(...shares) >= 0.99) largest[name] = load;
    }
  }
  console.log(`largest load with 99% in limit: eager ${largest.eager}, planned ${largest.planned}`);
  for (const { triton, models } of Object.values(settings)) {
    await triton.close();
    for (const { close } of models) close();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
