import type { Clock } from "../clock/clock.js";
import type { ModelConfig } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import { InferenceRequest } from "../request/inference-request.js";
import type { InferenceResponse } from "../request/inference-response.js";
import { copyTensor } from "../tensor/copy.js";
import { fromConfigDataType } from "../tensor/data-type.js";
import { tensorFromValue } from "../tensor/from-value.js";
import { toNdArray } from "../tensor/nd-array.js";
import { Tensor } from "../tensor/tensor.js";
import type { InferOptions } from "./infer-options.js";

/** Values by input name, in any form that a tensor can be given. */
export type InputValues = Readonly<Record<string, unknown>>;

/** ndarrays by output name. */
export type OutputArrays = Record<string, ReturnType<typeof toNdArray>>;

/** How the batch axis is meant: given with the values, or added for one sample and taken off its results. */
export type BatchAxis = "given" | "added";

/**
 * One inference without a network: the same request, checks, queue and batcher as over a transport. Inputs are
 * copied on the way in and outputs on the way out, so that neither side sees the other's later changes.
 */
export async function inferInProcess(
  model: ModelVersion,
  clock: Clock,
  values: InputValues,
  options: InferOptions,
  axis: BatchAxis,
): Promise<OutputArrays> {
  if (model.state !== "READY") await whenReady(model);
  const added = axis === "added" && model.config.maxBatchSize > 0;
  const inputs = toTensors(model.config, values, added);
  const response = await send(model, clock, inputs, options);
  const arrays: OutputArrays = {};
  for (const [name, tensor] of response.outputs) {
    const shape = added ? tensor.shape.slice(1) : tensor.shape;
    arrays[name] = toNdArray(copyTensor(tensor).reshaped(shape));
  }
  return arrays;
}

async function whenReady(model: ModelVersion): Promise<void> {
  if (model.state === "LOADING") await model.ready;
  if (model.state !== "READY") {
    throw new TritonError(
      "UNAVAILABLE",
      `model '${model.name}' version ${model.version} is not ready: ${model.reason}`,
    );
  }
}

function toTensors(config: ModelConfig, values: InputValues, added: boolean): Map<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const input = config.input.find((one) => one.name === name);
    if (input === undefined) {
      tensors.set(name, UNKNOWN_INPUT);
      continue;
    }
    const shape = config.maxBatchSize > 0 && !added ? [-1, ...input.dims] : input.dims;
    const what = `input '${name}' of model '${config.name}'`;
    const tensor = copyTensor(
      tensorFromValue(value, { what, datatype: fromConfigDataType(input.dataType)!, shape }),
    );
    tensors.set(name, added ? tensor.reshaped([1, ...tensor.shape]) : tensor);
  }
  return tensors;
}

/** Stands for an input that the model does not have: the validation names it. */
const UNKNOWN_INPUT = Tensor.fromElements("BYTES", [1], [new Uint8Array()]);

function send(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: InferOptions,
): Promise<InferenceResponse> {
  const { signal, timeoutMicroseconds } = options;
  return new Promise((resolve, reject) => {
    let onAbort: (() => void) | undefined;
    const request = new InferenceRequest({
      modelName: model.name,
      id: options.requestId,
      inputs,
      parameters: options.parameters,
      priority: options.priority,
      timeoutMicroseconds,
      deadline: timeoutMicroseconds ? clock.now() + timeoutMicroseconds / 1000 : undefined,
      onResponse: (outcome) => {
        if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
        if (outcome === undefined)
          reject(new TritonError("INTERNAL", `model '${model.name}' gave no response`));
        else if (TritonError.is(outcome)) reject(outcome);
        else resolve(outcome);
      },
    });
    const abort = () => request.cancel(cancelled(signal?.reason));
    if (signal?.aborted) {
      reject(cancelled(signal.reason));
      return;
    }
    model.infer(request);
    if (signal !== undefined && !request.settled) {
      onAbort = abort;
      signal.addEventListener("abort", abort, { once: true });
    }
  });
}

function cancelled(reason: unknown): TritonError {
  return new TritonError("CANCELLED", "the request was cancelled", { cause: reason });
}
