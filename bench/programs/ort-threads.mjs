/*
 * One ONNX model with a given number of instances and of threads for each, called in process with ready-made batches.
 * `spins` says whether idle threads wait in a busy loop, which is ONNX Runtime's default.
 */
import { onnxModels } from "../support/onnx-models.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, model: name, threads, instances, rows, spins = false } = programOptions();
const { Triton } = await importOf(tree, "core");
const { onnxruntime } = await importOf(tree, "backends", "onnxruntime/index");

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

/** Rows a second, with `inFlight` requests at a time. */
async function run(seconds, inFlight) {
  const elements = shape.reduce((product, dim) => product * dim, rows);
  const x = new Float32Array(elements).fill(0.5);
  const start = performance.now();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    for (; performance.now() < end; answers++) await model.infer({ x });
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return { rate: (answers * rows * 1000) / (performance.now() - start) };
}

answerCalls({ run });
