/*
 * Measures what only the engine `native` has on a GPU: an ensemble whose tensors stay there, TensorRT's second start
 * with its cache of engines, and a doctor who finds nothing wrong.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { diagnoseGpus, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Tensor, Triton } from "@tritonjs/core";
import { onnxModels } from "../support/onnx-models.mjs";
import { median } from "../support/pairs.mjs";
import { answerCalls } from "../support/program.mjs";

const STEPS = ["a", "b", "c"];
const ROWS = 64;

/** What the doctor finds wrong. */
async function wrong() {
  const findings = await diagnoseGpus();
  return findings.filter(({ isGood }) => !isGood).map(({ subject, text }) => `${subject}: ${text}`);
}

/** Milliseconds of a request through three steps, and the copies between the steps, on a provider. */
async function ensemble(provider, seconds) {
  const triton = new Triton();
  try {
    return await ensembleOf(triton, provider, seconds);
  } finally {
    await triton.close();
  }
}

async function ensembleOf(triton, provider, seconds) {
  const warnings = [];
  const { bytes, shape } = onnxModels.layer();
  const members = STEPS.map((modelName) =>
    triton.bind({
      modelName,
      inferFunc: onnxruntime({
        model: bytes,
        engine: "native",
        executionProviders: [provider],
        onWarning: (text) => warnings.push(text),
      }),
      config: { maxBatchSize: 64 },
    }),
  );
  await Promise.all(members.map((member) => member.ready()));
  const used = members[0].instances()[0].details.executionProvider;
  if (used !== provider) return { works: false, reason: warnings[0] };
  const steps = STEPS.map((modelName, i) => ({
    modelName,
    inputMap: { x: i === 0 ? "x" : `m${i}` },
    outputMap: { y: i === STEPS.length - 1 ? "y" : `m${i + 1}` },
  }));
  const handle = triton.bindEnsemble({
    modelName: "ensemble",
    inputs: [{ name: "x", dtype: "FP32", shape }],
    outputs: [{ name: "y", dtype: "FP32", shape }],
    steps,
    config: { maxBatchSize: 64 },
  });
  await handle.ready();
  const x = Tensor.fromElements("FP32", [ROWS, ...shape], new Float32Array(ROWS * shape[0]).fill(0.5));
  const request = () => handle.infer({ x });
  await request();
  const before = copiesBetween(members);
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (times.length < 3 || performance.now() < end) {
    const start = performance.now();
    await request();
    times.push(performance.now() - start);
  }
  return {
    works: true,
    milliseconds: median(times),
    copies: (copiesBetween(members) - before) / times.length,
  };
}

/** Tensors that all steps but the first have copied to the device. */
function copiesBetween(members) {
  return members
    .slice(1)
    .reduce((sum, member) => sum + Number(member.instances()[0].details.copiesToDevice ?? 0), 0);
}

/** Milliseconds until a model of TensorRT is ready: without a cache of engines, and with the cache of the first start. */
async function starts() {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-trt-"));
  try {
    const first = await startOf(folder);
    if (!first.works) return first;
    const second = await startOf(folder);
    return { works: true, first: first.milliseconds, second: second.milliseconds };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startOf(folder) {
  const triton = new Triton();
  try {
    const warnings = [];
    const { bytes, shape } = onnxModels.conv();
    const from = performance.now();
    const handle = triton.bind({
      modelName: "model",
      inferFunc: onnxruntime({
        model: bytes,
        engine: "native",
        executionProviders: [
          {
            name: "tensorrt",
            trt_engine_cache_enable: true,
            trt_engine_cache_path: folder,
            trt_timing_cache_enable: true,
            trt_timing_cache_path: folder,
          },
        ],
        onWarning: (text) => warnings.push(text),
      }),
    });
    await handle.ready();
    if (handle.instances()[0].details.executionProvider !== "tensorrt") {
      return { works: false, reason: warnings[0] };
    }
    const size = shape.reduce((product, dim) => product * dim, 1);
    // TensorRT builds its engine in the first run.
    await handle.infer({ x: Tensor.fromElements("FP32", [1, ...shape], new Float32Array(size).fill(0.5)) });
    return { works: true, milliseconds: performance.now() - from };
  } finally {
    await triton.close();
  }
}

answerCalls({ wrong, ensemble, starts });
