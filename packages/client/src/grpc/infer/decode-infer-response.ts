import { ContentsError, type inference, typedElements } from "@tritonjs/grpc-messages";
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
} from "@tritonjs/protocol";
import { InferResult, type SharedMemoryOutput } from "../../infer/infer-result.js";

/** The answer to an inference as a gRPC message. */
export type ResponseMessage = inference.ModelInferResponse.$Properties;
type OutputMessage = inference.ModelInferResponse.InferOutputTensor.$Properties;

/**
 * Decodes the result in a response. Its tensors are views of the message.
 *
 * @throws TritonError INTERNAL for outputs that contradict themselves.
 */
export function decodeInferResponse(message: ResponseMessage): InferResult<ResponseMessage> {
  const tensors = new Map<string, Tensor>();
  const sharedMemoryOutputs = new Map<string, SharedMemoryOutput>();
  const raw = message.rawOutputContents ?? [];
  for (const [index, output] of (message.outputs ?? []).entries()) {
    const described = describe(output);
    if (isElsewhere(described, raw[index])) sharedMemoryOutputs.set(output.name ?? "", described);
    else tensors.set(output.name ?? "", outputTensor(output, described, raw[index]));
  }
  return new InferResult({
    id: message.id ?? "",
    modelName: message.modelName ?? "",
    modelVersion: message.modelVersion ?? "",
    parameters: Object.fromEntries(
      Object.entries(message.parameters ?? {}).map(([name, value]) => [name, parameterValue(value)]),
    ),
    tensors,
    sharedMemoryOutputs,
    response: message,
  });
}

function describe({ name, datatype, shape }: OutputMessage): SharedMemoryOutput {
  if (!isDataType(datatype))
    throw malformed(`output '${name}': expected a known datatype, got '${datatype}'`);
  const dims = (shape ?? []) as Shape;
  if (!dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) {
    throw malformed(`output '${name}': expected non-negative dimensions, got shape ${shapeToString(dims)}`);
  }
  return { datatype, shape: dims };
}

/** True for an output in shared memory: it has elements, but its raw contents are empty. */
function isElsewhere({ shape }: SharedMemoryOutput, raw: Uint8Array | undefined): boolean {
  return raw?.byteLength === 0 && elementCount(shape) > 0;
}

function outputTensor(
  { name, contents }: OutputMessage,
  { datatype, shape }: SharedMemoryOutput,
  raw: Uint8Array | undefined,
): Tensor {
  const tensor =
    raw === undefined && contents != null
      ? typedTensor(contents, datatype, shape, `output '${name}'`)
      : Tensor.fromBytes(datatype, shape, raw ?? new Uint8Array(0));
  if (!fits(tensor, datatype)) {
    const { byteLength } = tensor.bytes;
    throw malformed(
      `output '${name}': got ${byteLength} bytes, which do not fill shape ${shapeToString(shape)}`,
    );
  }
  return tensor;
}

function typedTensor(
  contents: inference.InferTensorContents.$Properties,
  datatype: DataType,
  shape: Shape,
  where: string,
): Tensor {
  try {
    const elements = typedElements(contents, datatype, where);
    return elements === undefined
      ? Tensor.fromBytes(datatype, shape, new Uint8Array(0))
      : Tensor.fromElements(datatype, shape, elements);
  } catch (error) {
    throw error instanceof ContentsError ? malformed(error.message) : error;
  }
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
  return new TritonError("INTERNAL", `cannot read the server's answer as an inference response: ${message}`, {
    reason: "INVALID_ANSWER",
  });
}
