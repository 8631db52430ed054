/*
 * One ONNX model in so many instances of so many threads, asked in process with ready-made batches. `spins` says whether
 * threads without work wait in a busy loop, which is ONNX Runtime's default.
 */
import { onnxModels } from "../support/onnx-models.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, model: name, threads, instances, rows, spins = false } = programOptions();
const { Triton } = await importOf(tree, "core");
const { onnxruntime } = await importOf(tree, "core", "backends/onnxruntime/index");

const { bytes, shape } = onnxModels[name]();
const triton = new Triton();
const model = triton.bind({
  modelName: name,
  inferFunc: onnxruntime({
    model: bytes,
    intraOpNumThreads: threads,
    sessionConfig: { "session.intra_op.allow_spinning": spins ? "1" : "0" },
  }),
  config: { maxBatchSize: rows, batcher: false, instanceGroup: { count: instances } },
});
await triton.ready();

/** Rows a second, with enough requests under way that no instance waits for one. */
async function run(seconds) {
  const elements = shape.reduce((product, dim) => product * dim, rows);
  const x = new Float32Array(elements).fill(0.5);
  const start = performance.now();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    for (; performance.now() < end; answers++) await model.infer({ x });
  };
  await Promise.all(Array.from({ length: 2 * instances }, client));
  return { rate: (answers * rows * 1000) / (performance.now() - start) };
}

answerCalls({ run });
