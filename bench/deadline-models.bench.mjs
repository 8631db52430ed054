/*
 * Does the simulation of deadlines (docs/deadlines.md) hold for real models? Serves an ONNX MLP in a worker and a Python
 * model with `deadlines`, under Poisson load of two classes below and above capacity. The models really run each batch.
 * The clock of the server stands still meanwhile, and then moves by the processor time that the batch took: so other
 * programs of the machine decide nothing. Each run is recorded, and replayed through the simulation, which learns the
 * times of batches from the recording.
 *
 * Exit code 1 if the median difference of the share in time, or of the mean latency, exceeds 10%.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { python } from "@tritonjs/backends/python";
import { readTrace, recordingOf, replay } from "@tritonjs/cli/tools";
import { Triton } from "@tritonjs/core";
import { readPrototxt } from "@tritonjs/core/config";
import { onnxModels } from "./support/onnx-models.mjs";
import { median, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

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

let cpuBefore = process.cpuUsage();
const MODELS = {
  mlp: {
    shape: mlp.shape,
    backend: () => onnxruntime({ model: join(folder, "mlp.onnx"), engine: "worker", intraOpNumThreads: 1 }),
    begin: () => {
      cpuBefore = process.cpuUsage();
    },
    tookMs: () => {
      const { user, system } = process.cpuUsage(cpuBefore);
      return (user + system) / 1000;
    },
  },
  python: {
    shape: [256],
    backend: () => python({ model: join(folder, "model.py") }),
    begin: () => {},
    tookMs: ([first]) => first.get("y").elements[0],
  },
};

/** A clock that moves from timer to timer, and stands still while a batch really runs. */
class WorkClock {
  running = 0;
  /** Called when a batch has really run. */
  onIdle;
  #now = 0;
  #timers = [];

  now() {
    return this.#now;
  }

  wallNow() {
    return this.#now;
  }

  setTimer(delayMs, run) {
    const timer = { at: this.#now + Math.max(0, delayMs), run };
    const after = this.#timers.findIndex(({ at }) => at > timer.at);
    this.#timers.splice(after < 0 ? this.#timers.length : after, 0, timer);
    const cancel = () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
    return { cancel };
  }

  defer(run) {
    queueMicrotask(run);
  }

  async runUntil(isOver) {
    while (!isOver()) {
      await turn();
      await turn();
      // A loop that spins would cost processor time too.
      if (this.running > 0) {
        await new Promise((done) => {
          this.onIdle = done;
        });
        continue;
      }
      const timer = this.#timers.shift();
      if (timer === undefined) continue;
      this.#now = Math.max(this.#now, timer.at);
      timer.run();
    }
  }
}

/** The backend of a model whose batches take their processor time on the clock. */
function timed({ backend, begin, tookMs }, clock) {
  const inner = backend();
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
        return async (execution) => {
          clock.running++;
          begin();
          const results = await target.execute(execution);
          const ms = tookMs(results);
          clock.running--;
          clock.onIdle?.();
          await new Promise((done) => clock.setTimer(ms, done));
          return results;
        };
      },
    });
  return new Proxy(inner, {
    set,
    get: (_, key) =>
      key === "createExecutor" ? (context) => executor(inner.createExecutor(context)) : bound(inner, key),
  });
}

/** Serves Poisson load to a model whose batcher has been taught, and returns what was recorded. */
async function record(name, load, run) {
  const model = MODELS[name];
  const file = join(folder, `${name}-${load}-${run}.json`);
  const clock = new WorkClock();
  const triton = new Triton({ clock, trace: { level: "TIMESTAMPS", rate: 1, file } });
  const handle = triton.bind({
    modelName: name,
    inputs: [{ name: "x", dtype: "FP32", shape: model.shape }],
    outputs: [{ name: "y", dtype: "FP32", shape: [10] }],
    inferFunc: timed(model, clock),
    config: { maxBatchSize: MAX_BATCH, batcher: { deadlines: true } },
  });
  await handle.ready();
  const row = new Float32Array(model.shape.reduce((product, one) => product * one, 1)).fill(0.5);
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
    for (const name of Object.keys(MODELS)) {
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
    rows[name][`${figure}, difference %`] = short(100 * difference);
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
