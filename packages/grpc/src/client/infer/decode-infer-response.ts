import type { inference } from "#proto";
import { decodeTypedContents } from "../../decode/typed-contents.js";
import {
  type DataType,
  elementByteSize,
  elementCount,
  isDataType,
  type ParameterValue,
  type Shape,
  shapeToString,
  Tensor,
  TritonError,
} from "../core.js";
import { InferResult } from "./infer-result.js";

type ResponseMessage = inference.ModelInferResponse.$Properties;
type OutputMessage = inference.ModelInferResponse.InferOutputTensor.$Properties;

/**
 * The result in a response. Its tensors are views of the message.
 *
 * @throws TritonError INTERNAL for outputs that contradict themselves.
 */
export function decodeInferResponse(message: ResponseMessage): InferResult {
  const tensors = new Map<string, Tensor>();
  const raw = message.rawOutputContents ?? [];
  for (const [index, output] of (message.outputs ?? []).entries()) {
    if (output.parameters?.shared_memory_region !== undefined) continue;
    tensors.set(output.name ?? "", outputTensor(output, raw[index]));
  }
  return new InferResult({
    id: message.id ?? "",
    modelName: message.modelName ?? "",
    modelVersion: message.modelVersion ?? "",
    parameters: Object.fromEntries(
      Object.entries(message.parameters ?? {}).map(([name, value]) => [name, parameterValue(value)]),
    ),
    tensors,
  });
}

function outputTensor(
  { name, datatype, shape, contents }: OutputMessage,
  raw: Uint8Array | undefined,
): Tensor {
  if (!isDataType(datatype)) throw malformed(`output '${name}' has datatype '${datatype}'`);
  const dims = (shape ?? []) as Shape;
  if (!dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) {
    throw malformed(`output '${name}' has shape ${shapeToString(dims)}`);
  }
  const tensor =
    raw === undefined && contents != null
      ? decodeTypedContents(contents, datatype, dims, `output '${name}'`)
      : Tensor.fromBytes(datatype, dims, raw ?? new Uint8Array(0));
  if (!fits(tensor, datatype)) {
    const { byteLength } = tensor.bytes;
    throw malformed(`output '${name}' of shape ${shapeToString(dims)} has ${byteLength} bytes`);
  }
  return tensor;
}

function fits(tensor: Tensor, datatype: DataType): boolean {
  const count = elementCount(tensor.shape);
  if (datatype !== "BYTES") return tensor.bytes.byteLength === count * elementByteSize(datatype);
  return (tensor.elements as Uint8Array[]).length === count;
}

function parameterValue(parameter: inference.InferParameter.$Properties): ParameterValue {
  const { boolParam, int64Param, stringParam, doubleParam, uint64Param } = parameter;
  return boolParam ?? int64Param ?? stringParam ?? doubleParam ?? uint64Param ?? "";
}

function malformed(message: string): TritonError {
  return new TritonError("INTERNAL", `the server's answer is no answer to an inference: ${message}`);
}
