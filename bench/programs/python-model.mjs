/*
 * One model in process that doubles FP32[size]. `kind` says how it runs: "python", a model.py in its process;
 * "callback", a batch callback on this thread; "process", a module in a child process. Without `batched`, each request of the Python model is a batch.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ndarray from "ndarray";
import { answerCalls, programOptions, treeCpuMicroseconds } from "../support/program.mjs";
import { importOf, withRepository } from "../support/tree.mjs";

const MODEL = `
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("y", request.inputs()[0].as_numpy() * 2)])
            for request in requests
        ]
`;
const { kind, batched = true, tree } = programOptions();
const CONFIG = `backend: "python"
max_batch_size: ${batched ? 64 : 0}
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
${batched ? "dynamic_batching { }" : ""}
`;
const DOUBLE = "({ x }) => ({ y: Object.assign(x, { data: x.data.map((value) => 2 * value) }) })";

const { batch, Triton } = await importOf(tree, "core");
const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const double = batch(({ x }) => ({ y: Object.assign(x, { data: x.data.map((value) => 2 * value) }) }));

async function serve() {
  if (kind === "python") {
    mkdirSync(join(folder, "double", "1"), { recursive: true });
    writeFileSync(join(folder, "double", "config.pbtxt"), CONFIG);
    writeFileSync(join(folder, "double", "1", "model.py"), MODEL);
    const triton = new Triton(await withRepository(tree, { modelRepository: folder }));
    await triton.ready();
    return triton;
  }
  const module = join(folder, "double.mjs");
  const core = import.meta.resolve("@tritonjs/core");
  writeFileSync(module, `import { batch } from ${JSON.stringify(core)};\nexport default batch(${DOUBLE});\n`);
  const triton = new Triton();
  const model = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: kind === "process" ? pathToFileURL(module) : double,
    config: { maxBatchSize: 64, ...(kind === "process" ? { instanceGroup: { isolation: "process" } } : {}) },
  });
  await model.ready();
  return triton;
}

const triton = await serve();

/**
 * Keeps `concurrency` requests in flight. Returns requests a second, and the processor time of a request in this process
 * and the model's.
 */
async function run(size, concurrency, seconds) {
  const x = ndarray(new Float32Array(size).fill(1), [1, size]);
  const start = performance.now();
  const cpu = treeCpuMicroseconds();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    while (performance.now() < end) {
      const { y } = await triton.infer("double", { x });
      if (y.data[size - 1] !== 2) throw new Error("a wrong answer");
      answers++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return {
    rate: (answers * 1000) / (performance.now() - start),
    cpuMicroseconds: (treeCpuMicroseconds() - cpu) / answers,
  };
}

answerCalls({ run });
