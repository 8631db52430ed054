import type { Tensors } from "../../batch/merge-inputs.js";
import { splitOutputs } from "../../batch/split-outputs.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import { sequenceTensors } from "../../config/sequence-batching.js";
import { TritonError } from "../../errors/triton-error.js";
import type {
  WorkerBatch,
  WorkerHost,
  WorkerModel,
  WorkerResult,
} from "../../instance/worker/worker-model.js";
import { createSession, type OpenSession, type SessionData } from "./create-session.js";
import { fromResults, toFeeds } from "./ort-tensors.js";

/** Runs the session over the inputs of one or more requests. */
type Run = (inputs: Tensors) => Promise<Tensors>;

/** Entry of workers that run an ONNX model: one session each. */
export async function load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel> {
  const ort = await importOnnxRuntime();
  const open = await createSession(ort, data as SessionData, host.warn);
  // The file may have more outputs than the model was bound with.
  const { output, sequenceBatching } = info.modelConfig;
  const states = sequenceTensors(sequenceBatching).outputs;
  const outputNames = [...new Set([...output.map(({ name }) => name), ...states])];
  return {
    ownsOutputs: true,
    details: { executionProvider: open.provider },
    execute: (batch) => execute((inputs) => run(open, inputs, outputNames), batch),
    close: () => open.session.release(),
  };
}

async function importOnnxRuntime(): Promise<typeof import("onnxruntime-node")> {
  try {
    return await import("onnxruntime-node");
  } catch (error) {
    throw new TritonError(
      "UNAVAILABLE",
      `onnxruntime-node cannot be loaded (${TritonError.from(error).message}); install it next to @tritonjs/core`,
      { cause: error },
    );
  }
}

async function execute(run: Run, { inputs, indivisible, requests }: WorkerBatch): Promise<WorkerResult> {
  try {
    return { merged: await run(inputs) };
  } catch (error) {
    if (!TritonError.is(error) || requests.length === 1 || indivisible) throw error;
  }
  // One request holds text that ONNX Runtime cannot take: the others shall not fail with it.
  const rows = requests.map((request) => request.rows);
  const separate: (Tensors | TritonError)[] = [];
  for (const part of splitOutputs(inputs, rows)) {
    separate.push(await run(part).catch((error) => TritonError.from(error)));
  }
  return { separate };
}

async function run(
  { session }: OpenSession,
  inputs: Tensors,
  outputNames: readonly string[],
): Promise<Tensors> {
  return fromResults(await session.run(toFeeds(inputs), outputNames));
}
