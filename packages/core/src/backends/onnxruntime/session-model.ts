import { TritonError } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import { splitOutputs } from "../../batch/split-outputs.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type {
  OpenModel,
  WorkerBatch,
  WorkerHost,
  WorkerModel,
  WorkerResult,
} from "../../instance/worker/worker-model.js";
import { createSession, type SessionData } from "./create-session.js";
import { importOnnxRuntime } from "./import-onnx-runtime.js";
import { fromResults, toFeeds } from "./ort-tensors.js";
import { outputNamesOf } from "./output-names.js";
import { scalarInputs, scalarOutputs } from "./scalars.js";
import { sessionTensors } from "./session-tensors.js";

/** Runs the session on the inputs of one or more requests. */
type Run = (inputs: Tensors) => Promise<Tensors>;

/** Entry of workers that run an ONNX model, one session in each worker. */
export async function load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel> {
  return (await open(data, host)).load(info);
}

/** Loads ONNX Runtime. */
export const prepare = importOnnxRuntime;

/** Opens the session, whose tensors complete the configuration. */
export async function open(data: unknown, { warn }: Pick<WorkerHost, "warn">): Promise<OpenModel> {
  const ort = await importOnnxRuntime();
  const { session, provider } = await createSession(ort, data as SessionData, warn);
  const close = () => session.release();
  return {
    description: sessionTensors(session),
    load: ({ modelConfig }) => {
      const outputNames = outputNamesOf(modelConfig);
      const scalars = scalarInputs(data as SessionData, modelConfig);
      const shaped = scalarOutputs(modelConfig);
      const run: Run = async (inputs) =>
        shaped(fromResults(await session.run(toFeeds(inputs, scalars), outputNames)));
      return {
        ownsOutputs: true,
        details: { executionProvider: provider },
        execute: (batch) => execute(run, batch),
        close,
      };
    },
    close,
  };
}

async function execute(run: Run, { inputs, indivisible, rows }: WorkerBatch): Promise<WorkerResult> {
  try {
    return { merged: await run(inputs) };
  } catch (error) {
    if (!TritonError.is(error) || rows.length === 1 || indivisible) throw error;
  }
  // One request holds text that ONNX Runtime cannot take. The other requests must not fail with it.
  const separate: (Tensors | TritonError)[] = [];
  for (const part of splitOutputs(inputs, rows)) {
    separate.push(await run(part).catch((error) => TritonError.from(error)));
  }
  return { separate };
}
