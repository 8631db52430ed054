import {
  elementCount,
  fromConfigDataType,
  isOnlyBinary,
  type JsonSource,
  type Tensor,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import { invalidAnswer } from "../caller.js";
import { type RequestOptions, requestParameters } from "../infer-request.js";
import { malformedAnswer } from "../infer-result.js";
import type { GenerateInputs, GenerateResponse } from "./infer-messages.js";
import type { ModelConfigTensor } from "./server-answers.js";

/*
 * Tensors of Triton's generate extension: flat lists of elements, or one element. Their shapes are those of the model.
 */

/**
 * The members of a generate request.
 *
 * @throws TritonError INVALID_ARG for a tensor that has no JSON form.
 */
export function generateInputs(
  modelName: string,
  inputs: Readonly<Record<string, Tensor>>,
  request: RequestOptions,
): GenerateInputs {
  const tensors = Object.entries(inputs).map(([name, tensor]) => [name, flatJson(modelName, name, tensor)]);
  const { id } = request;
  return { ...(id && { id }), ...requestParameters(request), ...Object.fromEntries(tensors) };
}

function flatJson(modelName: string, name: string, { datatype, elements }: Tensor): JsonSource {
  const what = `input '${name}' of model '${modelName}'`;
  if (isOnlyBinary(datatype)) throw noJson(`${what}: cannot send ${datatype} as JSON: use the gRPC client`);
  const list = Array.isArray(elements)
    ? elements.map((bytes) => textOf(what, bytes))
    : datatype === "BOOL"
      ? Array.from(elements as Uint8Array, (value) => value !== 0)
      : Array.from(elements as ArrayLike<number | bigint>);
  return list.length === 1 ? list[0]! : list;
}

function textOf(what: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw noJson(
      `${what}: cannot send an element as JSON, because it is not UTF-8: use the gRPC client`,
      cause,
    );
  }
}

function noJson(message: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT", cause });
}

/**
 * The outputs of a response as ndarrays by name, in the shapes of the model's configuration.
 *
 * @throws TritonError INTERNAL for a response that does not fit the configuration.
 */
export function generatedArrays(
  modelName: string,
  outputs: readonly ModelConfigTensor[],
  response: GenerateResponse,
): Record<string, ReturnType<typeof toNdArray>> {
  const arrays: Record<string, ReturnType<typeof toNdArray>> = Object.create(null);
  for (const { name, data_type, dims } of outputs) {
    const value = response[name];
    if (value === undefined) continue;
    const what = `output '${name}'`;
    const datatype = fromConfigDataType(data_type);
    if (datatype === undefined) {
      throw invalidAnswer(`${what} of model '${modelName}': expected a known data type, got '${data_type}'`);
    }
    const list = Array.isArray(value) ? value : [value];
    const shape = shapeFor(dims.map(Number), list.length);
    let tensor: Tensor;
    try {
      tensor = tensorFromValue(list, { what, datatype, shape: [-1] }).reshaped(shape);
    } catch (cause) {
      throw malformedAnswer(TritonError.from(cause).message, cause);
    }
    arrays[name] = toNdArray(tensor, "output", name, modelName);
  }
  return arrays;
}

/** The shape of a flat list: the innermost open dimension takes what the others leave; one dimension if that is impossible. */
function shapeFor(dims: readonly number[], count: number): number[] {
  const open = dims.lastIndexOf(-1);
  const fixed = elementCount(dims.map((dim) => (dim === -1 ? 1 : dim)));
  if (count % fixed !== 0 || (open < 0 && count !== fixed)) return [count];
  return dims.map((dim, axis) => (dim !== -1 ? dim : axis === open ? count / fixed : 1));
}
