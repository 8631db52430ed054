/*
 * ONNX models on one engine: `worker` or `native` of tritonjs, or `direct`, which calls `session.run` of
 * onnxruntime-node on the main thread.
 */

import { percentile } from "../support/pairs.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, engine, files, instances = 1, shape } = programOptions();
const x = new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(0.5);
const runners = engine === "direct" ? await direct() : await served();

async function direct() {
  const { default: ort } = await import("onnxruntime-node");
  const options = { intraOpNumThreads: 1 };
  const sessions = await Promise.all(files.map((file) => ort.InferenceSession.create(file, options)));
  return sessions.map((session) => () => session.run({ x: new ort.Tensor("float32", x, [1, ...shape]) }));
}

async function served() {
  const { Triton } = await importOf(tree, "core");
  const { onnxruntime } = await importOf(tree, "backends", "onnxruntime/index");
  const triton = new Triton();
  const models = files.map((model, i) =>
    triton.bind({
      modelName: `model-${i}`,
      inferFunc: onnxruntime({ model, engine, intraOpNumThreads: 1 }),
      config: { maxBatchSize: 32, instanceGroup: [{ count: instances }] },
    }),
  );
  await triton.ready();
  return models.map((model) => () => model.inferSample({ x }));
}

/** Requests one after another, to all models in turn: microseconds of each, and processor time. */
async function run(count) {
  const times = [];
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await runners[i % runners.length]();
    times.push(1000 * (performance.now() - start));
  }
  const { user, system } = process.cpuUsage(before);
  return { p50: percentile(times, 50), p99: percentile(times, 99), cpu: (user + system) / count };
}

answerCalls({ run });
