/*
 * What does a GPU give a Python model of PyTorch behind the dynamic batcher? Requests a second with 1, 16 and 64 at a
 * time: with batches and one row at a time on the GPU, and with batches on the CPU. On a machine without a GPU or
 * without PyTorch it says so and does nothing.
 */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { SECONDS, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const UNITS = 1024;
const CONCURRENCIES = [1, 16, 64];
const MODELS = {
  "gpu, batches": { name: "batches", kind: "KIND_GPU", maxBatchSize: 64 },
  "gpu, single rows": { name: "rows", kind: "KIND_GPU", maxBatchSize: 1 },
  "cpu, batches": { name: "cpu", kind: "KIND_CPU", maxBatchSize: 64 },
};

const { stdout: hardware, status } = spawnSync(
  "python3",
  ["-c", "import torch; print(torch.cuda.get_device_name(0))"],
  { encoding: "utf8" },
);
if (status !== 0) {
  console.log("skipped: python3 has no torch that finds a GPU");
  process.exit();
}

const MODEL_PY = `
import numpy as np, torch
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        on_gpu = args["model_instance_kind"] == "GPU"
        self.device = torch.device("cuda:" + args["model_instance_device_id"] if on_gpu else "cpu")
        torch.manual_seed(1)
        layers = [layer for _ in range(8) for layer in (torch.nn.Linear(${UNITS}, ${UNITS}), torch.nn.ReLU())]
        self.net = torch.nn.Sequential(*layers).eval().to(self.device)

    def execute(self, requests):
        parts = [request.inputs()[0].as_numpy() for request in requests]
        with torch.no_grad():
            y = self.net(torch.from_numpy(np.concatenate(parts)).to(self.device)).cpu().numpy()
        ends = np.cumsum([len(part) for part in parts])
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("y", rows)])
            for rows in np.split(y, ends[:-1])
        ]
`;

const repository = mkdtempSync(join(tmpdir(), "tritonjs-gpu-python-"));
for (const { name, kind, maxBatchSize } of Object.values(MODELS)) {
  mkdirSync(join(repository, name, "1"), { recursive: true });
  writeFileSync(join(repository, name, "1", "model.py"), MODEL_PY);
  writeFileSync(
    join(repository, name, "config.pbtxt"),
    `backend: "python" max_batch_size: ${maxBatchSize} dynamic_batching { }
input [ { name: "x" data_type: TYPE_FP32 dims: [ ${UNITS} ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ ${UNITS} ] } ]
instance_group [ { kind: ${kind} count: 1 } ]`,
  );
}
const triton = new Triton({ extensions: [withRepository({ modelRepository: repository })] });
try {
  await triton.ready();
  const x = new Float32Array(UNITS).fill(0.25);
  const answers = {};
  const rows = {};
  for (const [label, { name }] of Object.entries(MODELS)) {
    answers[label] = (await triton.infer(name, { x })).y.data;
    const row = {};
    let times = [];
    for (const concurrency of CONCURRENCIES) {
      times = await timesOf(name, x, concurrency);
      row[`${concurrency} at a time`] = Math.round(times.length / (4 * SECONDS));
    }
    times.sort((a, b) => a - b);
    rows[label] = { ...row, "p99 ms of 64": short(times[Math.floor(times.length * 0.99)]) };
  }
  const [gpu, , cpu] = Object.values(answers);
  const difference = gpu.reduce((most, value, i) => Math.max(most, Math.abs(value - cpu[i])), 0);
  const note = `Measured on ${hardware.trim()}. The answers of GPU and CPU differ by at most ${difference.toPrecision(2)}.`;
  report("gpu-python", { rows, note, document: "gpu.md" });
} finally {
  await triton.close();
  rmSync(repository, { recursive: true, force: true });
}

/** Milliseconds of each request of `concurrency` callers, each of which sends its next one after the answer. */
async function timesOf(name, x, concurrency) {
  const times = [];
  const end = performance.now() + 4000 * SECONDS;
  const call = async () => {
    while (performance.now() < end) {
      const began = performance.now();
      await triton.infer(name, { x });
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, call));
  return times;
}
