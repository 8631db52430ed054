/*
 * What does a batch of n rows cost on a GPU? Measures t(n) for n = 1 to 64 with CUDA, with WebGPU and on the CPU, and
 * fits the line a + b n. On a machine without a GPU it says so and does nothing. With BENCH_SOFTWARE=1 it measures
 * Vulkan in software there (SwiftShader, lavapipe). This shows that the benchmark runs, and is not published.
 * BENCH_PROVIDERS names other providers.
 *
 * Then measures the engine `native`: a request through three steps of an ensemble whose tensors stay on the GPU, a
 * request of one row with and without pinned memory, fixed places and a CUDA graph, and the second start of TensorRT. `gpu-python` measures PyTorch and runs last.
 */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { root, runNode } from "../scripts/run.mjs";
import { SECONDS, short } from "./support/pairs.mjs";
import { drawLines } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

/** Describes the graphics hardware of this machine; empty if none is found. */
export function graphicsHardware() {
  const { status, stdout } = spawnSync(
    "nvidia-smi",
    ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
    { encoding: "utf8", timeout: 15_000 },
  );
  if (status === 0 && stdout.trim() !== "") return stdout.trim().split("\n").join("; ");
  if (process.platform === "darwin" || process.platform === "win32") return "the GPU of this machine";
  const nodes = existsSync("/dev/dri") ? readdirSync("/dev/dri") : [];
  const rendering = nodes.filter((name) => name.startsWith("renderD"));
  return rendering.length === 0 ? "" : `DRM devices ${rendering.join(", ")}`;
}

/**
 * Fits `t(n) = a + b * n` to times by batch size, with errors relative to the times: a batch of 1 counts as much as one of
 * 64.
 *
 * @param points pairs of n and t
 * @returns `a`, `b`, and the largest relative error of a point
 */
export function fitCurve(points) {
  let [w, wn, wnn, wt, wnt] = [0, 0, 0, 0, 0];
  for (const [n, t] of points) {
    const weight = 1 / (t * t);
    w += weight;
    wn += weight * n;
    wnn += weight * n * n;
    wt += weight * t;
    wnt += weight * n * t;
  }
  const b = points.length < 2 ? 0 : (w * wnt - wn * wt) / (w * wnn - wn * wn);
  const a = (wt - b * wn) / w;
  const off = Math.max(...points.map(([n, t]) => Math.abs(a + b * n - t) / t));
  return { a, b, off };
}

const SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/** A batch that takes longer ends the curve: no GPU is that slow. */
const LONGEST_MS = 3000;
const hardware = graphicsHardware();
const software = hardware === "" && process.env.BENCH_SOFTWARE === "1";
if (hardware === "" && !software) {
  console.log("skipped: found no GPU (nvidia-smi lists none, and there is no /dev/dri/renderD*)");
  process.exit();
}

const providers = (process.env.BENCH_PROVIDERS ?? "cuda,webgpu").split(",");
const rows = {};
const curves = {};
const plots = {};
const missing = [];
for (const model of ["mlp", "conv"]) {
  const lines = [];
  for (const provider of [...providers, "cpu"]) {
    const program = await startProgram("gpu-curve", { model, provider });
    try {
      const { works, reason } = await program.call("open");
      if (!works) {
        missing.push(`${provider}: ${reason}`);
        continue;
      }
      const points = await curveOf(program);
      const { a, b, off } = fitCurve(points);
      const [most, time] = points.at(-1);
      curves[`${model}, ${provider}`] = points;
      lines.push({ label: provider, points });
      rows[`${model}, ${provider}`] = {
        "t(1) ms": short(points[0][1]),
        [`t(${SIZES.at(-1)}) ms`]: most === SIZES.at(-1) ? short(time) : "",
        "a ms": short(a),
        "b ms a row": short(b),
        "furthest off": `${Math.round(100 * off)} %`,
        "rows a second": short((1000 * most) / time),
      };
    } finally {
      await program.stop();
    }
  }
  plots[model] = [
    drawLines,
    `${model}: milliseconds of a batch`,
    lines,
    { xLabel: "rows", yLabel: "ms", xLog: true },
  ];
}

async function curveOf(program) {
  const points = [];
  for (const size of SIZES) {
    const time = await program.call("time", size, SECONDS / 4);
    points.push([size, time]);
    if (time > LONGEST_MS) break;
  }
  return points;
}

const reasons = [...new Set(missing)].map((one) => `Not measured: ${one}.`);
if (software || !Object.keys(rows).some((name) => !name.endsWith(", cpu"))) {
  console.table(rows);
  console.log([...reasons, software ? "Vulkan in software: these are not figures of a GPU." : ""].join("\n"));
} else {
  const note = [`Measured on ${hardware}. Times include the way to the GPU and back.`, ...reasons].join(" ");
  report("gpu", { rows, plots, figures: { hardware, curves }, note, document: "gpu.md" });
}

const native = {};
const lacking = [];
const program = await startProgram("gpu-native", {});
try {
  for (const provider of [...providers, "cpu"]) {
    const { works, reason, milliseconds, copies } = await program.call("ensemble", provider, SECONDS / 2);
    if (!works) lacking.push(`${provider}: ${reason}`);
    else
      native[`three steps, ${provider}`] = {
        "ms a request": short(milliseconds),
        "copies between steps": copies,
      };
  }
  // Elsewhere, the cases are equal: it is a rehearsal.
  const kept = await program.call("memory", software ? "cpu" : "cuda", SECONDS / 4);
  if (!kept.works) lacking.push(`memory of cuda: ${kept.reason}`);
  for (const [name, { milliseconds, warning }] of Object.entries(kept.rows ?? {})) {
    native[`one row, ${name}`] = { "ms a request": short(milliseconds) };
    if (warning !== undefined) lacking.push(`${name}: ${warning}`);
  }
  const { works, reason, first, second } = await program.call("starts");
  if (!works) lacking.push(`tensorrt: ${reason}`);
  else {
    native["first start, tensorrt"] = { "ms to the first answer": short(first) };
    native["second start, tensorrt"] = {
      "ms to the first answer": short(second),
      "of the first": short(second / first),
    };
  }
  const wrong = await program.call("wrong");
  if (wrong.length > 0) lacking.push(`what the doctor says is wrong: ${wrong.join("; ")}`);
} finally {
  await program.stop();
}
const what = [...new Set(lacking)].map((one) => `Not measured: ${one}.`).join(" ");
if (software) {
  console.table(native);
  console.log(what);
} else {
  const note = `A request of 64 rows through three layers of 1,024 units. Measured on ${hardware}. ${what}`;
  report("gpu-native", { rows: native, figures: { hardware }, note, document: "gpu.md" });
  runNode(join(root, "bench", "gpu-python.bench.mjs"));
}
