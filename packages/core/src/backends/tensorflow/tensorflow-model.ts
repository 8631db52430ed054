import type { Tensor as TfTensor } from "@tensorflow/tfjs";
import {
  type DataType,
  fromConfigDataType,
  type ModelConfig,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type { InstanceInfo } from "../../callable/infer-context.js";

import type { WorkerModel } from "../../instance/worker/worker-model.js";

import { type OpenTensorFlowModel, openModel, type TensorFlowModelLocation } from "./open-model.js";
import { openRuntime, type Tf } from "./open-runtime.js";
import type { TensorflowRuntime } from "./options.js";
import { fromTf, toTf } from "./tf-tensors.js";

/** The data that a worker needs to open its model. It survives structured cloning. */
export interface TensorflowData extends TensorFlowModelLocation {
  readonly runtime: TensorflowRuntime;
}

/** Entry of workers that run a TensorFlow model, one model in each worker. */
export async function load(data: unknown, { modelConfig, device }: InstanceInfo): Promise<WorkerModel> {
  const { runtime, ...location } = data as TensorflowData;
  const tf = await openRuntime(runtime, device.kind === "KIND_GPU" ? device.id : undefined);
  const model = await openModel(tf, location);
  const outputs = dataTypes(modelConfig);
  return {
    // A backend of TensorFlow.js may return its own memory, for example that of a constant.
    ownsOutputs: false,
    details: {
      runtime,
      description: JSON.stringify(model.description),
    },
    execute: async ({ inputs }) => ({ merged: await run(tf, model, inputs, outputs) }),
    close: async () => model.dispose(),
  };
}

function dataTypes({ output }: ModelConfig): ReadonlyMap<string, DataType> {
  return new Map(output.map(({ name, dataType }) => [name, fromConfigDataType(dataType) ?? "FP32"]));
}

async function run(
  tf: Tf,
  model: OpenTensorFlowModel,
  inputs: Tensors,
  types: ReadonlyMap<string, DataType>,
): Promise<Tensors> {
  const held: TfTensor[] = [];
  try {
    const feeds: Record<string, TfTensor> = {};
    for (const [name, tensor] of inputs) {
      feeds[name] = toTf(tf, name, tensor);
      held.push(feeds[name]);
    }
    const results = await model.run(feeds, [...types.keys()]);
    held.push(...results.values());
    const outputs = new Map<string, Tensor>();
    for (const [name, datatype] of types) {
      const result = results.get(name);
      if (result !== undefined) outputs.set(name, await fromTf(name, datatype, result));
    }
    return outputs;
  } catch (error) {
    if (TritonError.is(error)) throw error;
    throw new TritonError("INTERNAL", `TensorFlow: ${TritonError.from(error).message.split("\n")[0]}`, {
      cause: error,
    });
  } finally {
    tf.dispose(held);
  }
}
