/*
 * Does the simulation of deadlines (docs/deadlines.md) hold for real models? Serves an ONNX MLP and a Python model with
 * `deadlines`, under Poisson load of two classes below and above capacity. The models really run each batch, in processes.
 * The clock of the server stands still meanwhile, and then moves by the processor time that the model took: so other
 * programs of the machine, and other work of the server, decide nothing. Each run is recorded, and replayed through the
 * simulation, which learns the times of batches from the recording.
 *
 * Exit code 1 if the median difference of the share in time, or of the mean latency, exceeds 10%. BENCH_MODELS names the
 * models to run.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { python } from "@tritonjs/backends/python";
import { Triton } from "@tritonjs/core";
import { readTrace, recordingOf, replay } from "@tritonjs/perf";
import { readPrototxt } from "@tritonjs/repository/config";
import { deadlines } from "@tritonjs/scheduling";
import { onnxModels } from "./support/onnx-models.mjs";
import { median, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";
import { timedOnnx, WorkClock } from "./support/work-clock.mjs";

const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 600);
const RUNS = Number(process.env.BENCH_RUNS ?? 3);
const LOADS = [0.7, 1.2];
const MAX_BATCH = 8;
/** Limits of the classes as multiples of a full batch, and the share of requests of the first one. */
const [TIGHT, LOOSE, TIGHT_SHARE] = [3, 15, 0.3];
/** Largest median difference of a figure, as a share. */
const LIMIT = 0.1;

/** The first number of each answer is the processor time of the batch, in milliseconds. */
const PYTHON = `
import time
import numpy as np
import triton_python_backend_utils as pb_utils

W = np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)


class TritonPythonModel:
    def execute(self, requests):
        start = time.process_time()
        rows = [request.inputs()[0].as_numpy() for request in requests]
        x = np.concatenate(rows)
        for _ in range(60):
            x = np.tanh(np.einsum("ij,jk->ik", x, W) / 16)
        parts = np.split(x[:, :10].copy(), np.cumsum([len(row) for row in rows])[:-1])
        for part in parts:
            part[:, 0] = 1000 * (time.process_time() - start)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", part)]) for part in parts]
`;

const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
const mlp = onnxModels.mlp();
writeFileSync(join(folder, "mlp.onnx"), mlp.bytes);
writeFileSync(join(folder, "model.py"), PYTHON);

/** The models: how many numbers a row has, and the `inferFunc` whose batches take their processor time on a clock. */
const MODELS = {
  mlp: { width: mlp.shape[0], serve: (clock) => timedOnnx(join(folder, "mlp.onnx"), clock) },
  python: { width: 256, serve: timedPython },
};

/** Runs batches of the Python model. */
function timedPython(clock) {
  const inner = python({ model: join(folder, "model.py") });
  const bound = (target, key) => {
    const value = target[key];
    return typeof value === "function" ? value.bind(target) : value;
  };
  const set = (target, key, value) => {
    target[key] = value;
    return true;
  };
  const executor = (target) =>
    new Proxy(target, {
      set,
      get(_, key) {
        if (key === "capacity") return 1;
        if (key === "takesAhead") return false;
        if (key !== "execute") return bound(target, key);
        return (execution) =>
          clock.work(
            () => target.execute(execution),
            ([first]) => first.get("y").elements[0],
          );
      },
    });
  const inferFunc = new Proxy(inner, {
    set,
    get: (_, key) =>
      key === "createExecutor" ? (context) => executor(inner.createExecutor(context)) : bound(inner, key),
  });
  return { inferFunc, close: () => {} };
}

/** Serves Poisson load to a model whose batcher has been taught, and returns what was recorded. */
async function record(name, load, run) {
  const model = MODELS[name];
  const file = join(folder, `${name}-${load}-${run}.json`);
  const clock = new WorkClock();
  const triton = new Triton({ clock, trace: { level: "TIMESTAMPS", rate: 1, file } });
  const { inferFunc, close } = model.serve(clock);
  const handle = triton.bind({
    modelName: name,
    inputs: [{ name: "x", dtype: "FP32", shape: [model.width] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [10] }],
    inferFunc,
    config: { maxBatchSize: MAX_BATCH, batcher: deadlines() },
  });
  await handle.ready();
  const row = new Float32Array(model.width).fill(0.5);
  let open = 0;
  const send = (options) => {
    open++;
    handle
      .inferSample({ x: row }, options)
      .catch(() => {})
      .finally(() => open--);
  };
  const times = [];
  for (let i = 0; i < 24; i++) {
    const begin = clock.now();
    const rows = i % 2 === 0 ? MAX_BATCH : 1 + ((7 * i) % MAX_BATCH);
    for (let n = 0; n < rows; n++) send({});
    await clock.runUntil(() => open === 0);
    if (i % 2 === 0 && i > 4) times.push(clock.now() - begin);
  }
  const fullMs = median(times);
  const perMs = (load * MAX_BATCH) / fullMs;
  let [sent, atMs] = [0, 0];
  for (let i = 0; i < REQUESTS; i++) {
    atMs += -Math.log(1 - Math.random()) / perMs;
    clock.setTimer(atMs, () => {
      sent++;
      const isTight = Math.random() < TIGHT_SHARE;
      // A limit that does not end a request which runs: its batch would be missing in the recording.
      const limitMs = (isTight ? TIGHT : LOOSE) * fullMs;
      send({ queueTimeoutMicroseconds: Math.ceil(1000 * limitMs), priority: isTight ? 1 : 2 });
    });
  }
  await clock.runUntil(() => sent === REQUESTS && open === 0);
  // The clock stands still while the trace is written.
  clock.running++;
  await triton.close();
  close();
  // Without the requests that taught the batcher, which have no class.
  const trace = (await readTrace([file])).filter(({ priority = 0 }) => priority > 0);
  return recordingOf(trace, name);
}

function figuresOf({ classes, latencyMs }) {
  const sum = (member) => classes.reduce((total, one) => total + one[member], 0);
  return { "in time, %": (100 * sum("inTime")) / sum("requests"), "mean, ms": latencyMs.mean };
}

const pairs = new Map();
try {
  for (let run = 1; run <= RUNS; run++) {
    for (const name of (process.env.BENCH_MODELS ?? Object.keys(MODELS).join()).split(",")) {
      const text = `name: "${name}" max_batch_size: ${MAX_BATCH} dynamic_batching { } instance_group { count: 1 }
        parameters { key: "deadlines" value { string_value: "true" } }`;
      for (const load of LOADS) {
        const recording = await record(name, load, run);
        const { recorded, predictions } = await replay(recording, [{ name, config: readPrototxt(text) }]);
        const pair = { real: figuresOf(recorded), simulated: figuresOf(predictions[0].figures) };
        const key = `${name}, ${load} of the capacity`;
        pairs.set(key, [...(pairs.get(key) ?? []), pair]);
        console.log(`run ${run}, ${key}:`, JSON.stringify(pair));
      }
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const rows = {};
const missed = [];
for (const [name, all] of pairs) {
  rows[name] = {};
  for (const figure of ["in time, %", "mean, ms"]) {
    const real = all.map((one) => one.real[figure]);
    const simulated = all.map((one) => one.simulated[figure]);
    const difference = median(all.map((_, i) => Math.abs(simulated[i] / real[i] - 1)));
    rows[name][`${figure}, real`] = short(median(real));
    rows[name][`${figure}, simulated`] = short(median(simulated));
    rows[name][`${figure}, difference %`] = short(Math.round(10_000 * difference) / 100);
    if (!(difference <= LIMIT)) missed.push(`${figure} of '${name}'`);
  }
}
report("deadline-models", {
  rows,
  figures: { requests: REQUESTS, runs: RUNS },
  document: "deadlines.md",
  note:
    `Medians of ${RUNS} runs of ${REQUESTS} requests (Poisson): 30% of them have ${TIGHT} times a full batch, the others ` +
    `${LOOSE} times. The difference is the median of the differences of single runs. Times are processor times.`,
});
if (missed.length > 0) {
  console.error(`missed the goal of ${100 * LIMIT}%: ${missed.join(", ")}`);
  process.exitCode = 1;
}
