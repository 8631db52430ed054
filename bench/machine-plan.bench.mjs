/*
 * One plan for all models of a machine (docs/deadlines.md): three ONNX models in workers, one instance each, take
 * requests at random, each model with a limit of its own. Once their batchers are independent and eager, as by default,
 * and once the plan (`rateLimit: "deadlines"`) chooses the next batch over all models. Both run in turn at the same loads.
 * Prints the share of each model's requests in their limit, and the largest rate at which all models have 99%.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton, TritonError } from "@tritonjs/core";
import { onnxModels } from "./support/onnx-models.mjs";

const CORES = availableParallelism();
const SECONDS = Number(process.env.BENCH_SECONDS ?? 6);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 2);
const LOADS = (process.env.BENCH_LOADS ?? "0.5,0.55,0.6,0.65,0.7,0.75,0.8,0.85,0.9").split(",").map(Number);
const MAX_BATCH = 8;
/** Limits as multiples of the time of one row. */
const MODELS = { mlp: 10, conv: 10, convolutions: 15 };

const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
const files = Object.keys(MODELS).map((name) => {
  const { bytes, shape } = onnxModels[name]();
  const file = join(folder, `${name}.onnx`);
  writeFileSync(file, bytes);
  return { name, file, shape };
});

function serve(planned) {
  const triton = new Triton(planned ? { rateLimit: "deadlines" } : {});
  const handles = files.map(({ name, file, shape }) => {
    const handle = triton.bind({
      modelName: name,
      inputs: [{ name: "x", dtype: "FP32", shape }],
      outputs: [{ name: "y", dtype: "FP32", shape: [10] }],
      inferFunc: onnxruntime({ model: file, engine: "worker", intraOpNumThreads: 1 }),
      config: { maxBatchSize: MAX_BATCH, batcher: planned ? { deadlines: true } : {} },
    });
    const row = new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(0.5);
    return { name, handle, row };
  });
  return { triton, handles, planned };
}

/** Milliseconds of a batch of each model, by its rows. */
async function measured({ handles }, rows) {
  const all = [];
  for (const { handle, row } of handles) {
    const times = [];
    for (let i = 0; i < 20; i++) {
      const start = performance.now();
      await Promise.all(Array.from({ length: rows }, () => handle.inferSample({ x: row })));
      times.push(performance.now() - start);
    }
    all.push(times.sort((a, b) => a - b)[10]);
  }
  return all;
}

/** Sends requests at random for some seconds. Resolves with the share of each model in its limit. */
async function run({ handles, planned }, rates, limits) {
  const sent = handles.map(() => 0);
  const inTime = handles.map(() => 0);
  const open = [];
  const start = performance.now();
  const next = rates.map((rate) => start - Math.log(1 - Math.random()) / rate);
  for (;;) {
    const now = performance.now();
    if (now - start > SECONDS * 1000) break;
    for (const [i, { handle, row }] of handles.entries()) {
      for (; next[i] <= now; next[i] += -Math.log(1 - Math.random()) / rates[i]) {
        const at = next[i];
        sent[i]++;
        const options = planned ? { timeoutMs: Math.max(1, limits[i] - (now - at)) } : {};
        open.push(
          handle.inferSample({ x: row }, options).then(
            () => {
              if (performance.now() - at <= limits[i]) inTime[i]++;
            },
            (error) => {
              if (!TritonError.is(error)) throw error;
            },
          ),
        );
      }
    }
    await sleep(1);
  }
  await Promise.all(open);
  return inTime.map((count, i) => count / sent[i]);
}

try {
  const settings = { eager: serve(false), planned: serve(true) };
  for (const { handles } of Object.values(settings)) for (const { handle } of handles) await handle.ready();
  const [one, full] = [await measured(settings.eager, 1), await measured(settings.eager, MAX_BATCH)];
  await measured(settings.planned, 1);
  await measured(settings.planned, MAX_BATCH);
  const limits = Object.values(MODELS).map((multiple, i) => multiple * one[i]);
  for (const [i, { name }] of files.entries()) {
    console.log(
      `${name}: ${one[i].toFixed(1)} ms alone, ${full[i].toFixed(1)} ms for ${MAX_BATCH}, limit ${limits[i].toFixed(0)} ms`,
    );
  }
  const largest = { eager: 0, planned: 0 };
  for (const load of LOADS) {
    const rates = full.map((ms) => (load * CORES * MAX_BATCH) / (files.length * ms));
    const worst = { eager: [], planned: [] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, setting] of Object.entries(settings)) {
        const shares = await run(setting, rates, limits);
        worst[name].push(Math.min(...shares));
        console.log(
          `load ${load}: ${name} ${shares.map((share) => `${(100 * share).toFixed(1)}%`).join(", ")}`,
        );
      }
    }
    // Another program may take the cores during one of the runs.
    for (const name of Object.keys(settings)) if (Math.max(...worst[name]) >= 0.99) largest[name] = load;
  }
  console.log(`largest load with 99% in limit: eager ${largest.eager}, planned ${largest.planned}`);
  for (const { triton } of Object.values(settings)) await triton.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
