import type { InferenceResponse } from "@tritonjs/core/frontend";
import type { ParameterValue, Tensor } from "@tritonjs/protocol";
import { ByteWriter } from "../json/byte-writer.js";
import { writeJson } from "../json/write-json.js";
import { isLongTensor, tensorDataSteps, writeTensorData } from "./tensor-data.js";

/**
 * Encodes the answer to a generate request: one object with id, model, parameters and outputs side by side, sorted by
 * name. An output of one element is that element, others are flat arrays.
 *
 * @throws TritonError INVALID_ARG for an output without a JSON form.
 */
export function encodeGenerateResponse(response: InferenceResponse): Buffer {
  const steps = generateResponseSteps(response);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Encodes an answer as {@link encodeGenerateResponse} does, with pauses within large tensors. */
export function* generateResponseSteps(response: InferenceResponse): Generator<void, Buffer> {
  const members = new Map<string, ParameterValue | Tensor>(response.outputs);
  for (const [name, value] of Object.entries(response.parameters)) members.set(name, value);
  members.set("model_name", response.modelName).set("model_version", response.modelVersion);
  if (response.id !== "") members.set("id", response.id);
  const writer = new ByteWriter();
  let separator = "{";
  for (const name of [...members.keys()].sort()) {
    writer.ascii(separator).string(name).ascii(":");
    const member = members.get(name)!;
    if (typeof member === "object") yield* elementSteps(writer, member);
    else writeJson(writer, member);
    separator = ",";
  }
  return writer.ascii("}").bytes();
}

function* elementSteps(writer: ByteWriter, tensor: Tensor): Generator<void> {
  if (isLongTensor(tensor)) yield* tensorDataSteps(writer, tensor);
  else writeTensorData(writer, tensor, tensor.shape.reduce((count, dim) => count * dim, 1) === 1);
}
