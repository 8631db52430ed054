/*
 * Measures what only the engine `native` has on a GPU: an ensemble whose tensors stay there, TensorRT's second start
 * with its cache of engines, and a doctor who finds nothing wrong.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gpu } from "@tritonjs/backends/gpu";
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

/** How the memory of a model on CUDA is kept, from the slowest to the fastest. */
const KEPT = {
  "copied by ONNX Runtime": { pools: { pinnedMemoryPoolByteSize: 0, cudaMemoryPoolByteSize: { 0: 0 } } },
  "at fixed places": { pools: { pinnedMemoryPoolByteSize: 0 } },
  "at fixed places, pinned": { pools: {} },
  "at fixed places, pinned, CUDA graph": { pools: {}, options: { enable_cuda_graph: true } },
};

/** Milliseconds of a request of one row by how its memory is kept. A model that changes its answer is an error. */
async function memory(provider, seconds) {
  const rows = {};
  // Its weights are random, so all cases have the same file.
  const { bytes, shape } = onnxModels.layer();
  let expected;
  for (const [name, { pools, options }] of Object.entries(KEPT)) {
    const warnings = [];
    const triton = new Triton({ extensions: [gpu(pools)] });
    try {
      const asked = provider === "cuda" ? { name: provider, ...options } : provider;
      const model = triton.bind({
        modelName: "model",
        inferFunc: onnxruntime({
          model: bytes,
          engine: "native",
          executionProviders: [asked],
          onWarning: (text) => warnings.push(text),
        }),
        config: { maxBatchSize: 64 },
      });
      await model.ready();
      const { executionProvider } = model.instances()[0].details;
      if (executionProvider !== provider) return { works: false, reason: warnings[0] };
      const x = Tensor.fromElements("FP32", [1, ...shape], new Float32Array(shape[0]).fill(0.5));
      const { y } = await model.infer({ x });
      expected ??= y.data[0];
      if (!(Math.abs(y.data[0] - expected) <= 1e-3 * Math.abs(expected))) {
        return { works: false, reason: `${name}: expected ${expected}, got ${y.data[0]}` };
      }
      const times = [];
      const end = performance.now() + seconds * 1000;
      while (times.length < 3 || performance.now() < end) {
        const start = performance.now();
        await model.infer({ x });
        times.push(performance.now() - start);
      }
      rows[name] = { milliseconds: median(times), details: model.instances()[0].details };
      if (warnings.length > 0) rows[name].warning = warnings[0];
    } finally {
      await triton.close();
    }
  }
  return { works: true, rows };
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

answerCalls({ wrong, ensemble, memory, starts });
