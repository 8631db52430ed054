import type {
  ModelDescription,
  WorkerBatch,
  WorkerHost,
  WorkerModel,
  WorkerResult,
} from "@tritonjs/core/backend";
import type { InstanceInfo, OpenModel, Tensors } from "@tritonjs/core/internal";
import { splitOutputs } from "@tritonjs/core/internal/worker";
import { TritonError } from "@tritonjs/protocol";
import { describeOnnxModel } from "./describe-onnx-model.js";
import type { SessionData } from "./onnx-options.js";
import { createSession, importOnnxRuntime } from "./ort-session.js";
import {
  fromResults,
  outputNamesOf,
  type SessionTensors,
  scalarInputs,
  scalarOutputs,
  sessionTensors,
  toFeeds,
} from "./ort-tensors.js";

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

/** Describes the model for a synchronous `bind`: ONNX Runtime infers the shapes that the file leaves out. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const opened = await open(data, { warn: () => {} });
  await opened.close();
  return describeOnnxModel((data as SessionData).model, opened.description as SessionTensors | undefined);
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
