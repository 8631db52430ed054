import {
  type DataType,
  elementByteSize,
  elementCount,
  inputTensor,
  isDataType,
  type ParameterValue,
  type Shape,
  shapeToString,
  Tensor,
} from "@tritonjs/protocol";
import { ContentsError, encodeParameter, type inference, typedElements } from "@tritonjs/protocol/grpc";
import {
  type InferInput,
  isSharedMemoryInput,
  namedInputs,
  type RequestOptions,
  requestParameters,
  type SharedMemoryRange,
} from "../infer-request.js";
import { InferResult, malformedAnswer, type SharedMemoryOutput } from "../infer-result.js";
import type { InferCall, OutputRequest, StreamInferRequest } from "./client-options.js";

type RequestMessage = inference.ModelInferRequest.$Properties;
type Parameters = Record<string, inference.InferParameter.$Properties>;

/**
 * Encodes an inference. Tensors travel as raw contents, which are views of the given arrays.
 *
 * @throws TritonError INVALID_ARG for inputs and parameters that cannot be sent.
 */
export function encodeInferRequest(modelName: string, call: InferCall): RequestMessage {
  const rawInputContents: Uint8Array[] = [];
  const inputs = namedInputs(call.inputs).map(([name, input]) => inputMessage(name, input, rawInputContents));
  return {
    modelName,
    modelVersion: String(call.modelVersion ?? ""),
    id: call.id ?? "",
    parameters: parameterMessages(call),
    inputs,
    outputs: (call.outputs ?? []).map(outputMessage),
    rawInputContents,
  };
}

/** Encodes a request on a stream, as {@link encodeInferRequest} does. */
export function encodeStreamRequest({
  modelName,
  enableEmptyFinalResponse,
  ...call
}: StreamInferRequest): RequestMessage {
  const message = encodeInferRequest(modelName, call);
  if (enableEmptyFinalResponse) {
    message.parameters!.triton_enable_empty_final_response = { boolParam: true };
  }
  return message;
}

/** Encodes the `parameters` of an infer request as messages. */
function parameterMessages(options: RequestOptions): Parameters {
  const all: Parameters = Object.create(null);
  const parameters = requestParameters(options);
  for (const [name, value] of Object.entries(parameters)) all[name] = encodeParameter(value);
  // The protocol gives these two a type that their values do not show.
  if (all.priority !== undefined) all.priority = { uint64Param: parameters.priority as number };
  if (all.timeout !== undefined) all.timeout = { int64Param: parameters.timeout as number };
  return all;
}

function inputMessage(
  name: string,
  input: InferInput,
  rawInputContents: Uint8Array[],
): inference.ModelInferRequest.InferInputTensor.$Properties {
  if (isSharedMemoryInput(input)) {
    const { datatype, shape, sharedMemory } = input;
    return { name, datatype, shape: [...shape], parameters: sharedMemoryParameters(sharedMemory) };
  }
  const { datatype, shape, bytes } = inputTensor(name, input);
  rawInputContents.push(bytes);
  return { name, datatype, shape: [...shape] };
}

function outputMessage(
  output: string | OutputRequest,
): inference.ModelInferRequest.InferRequestedOutputTensor.$Properties {
  const { name, classes, sharedMemory }: OutputRequest =
    typeof output === "string" ? { name: output } : output;
  if (sharedMemory !== undefined) return { name, parameters: sharedMemoryParameters(sharedMemory) };
  return { name, parameters: classes ? { classification: { int64Param: classes } } : {} };
}

function sharedMemoryParameters({ region, byteSize, offset }: SharedMemoryRange): Parameters {
  return {
    shared_memory_region: { stringParam: region },
    shared_memory_byte_size: { int64Param: byteSize },
    ...(offset ? { shared_memory_offset: { int64Param: offset } } : {}),
  };
}

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
    throw malformedAnswer(`output '${name}': expected a known datatype, got '${datatype}'`);
  const dims = (shape ?? []) as Shape;
  if (!dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) {
    throw malformedAnswer(
      `output '${name}': expected non-negative dimensions, got shape ${shapeToString(dims)}`,
    );
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
    throw malformedAnswer(
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
    throw error instanceof ContentsError ? malformedAnswer(error.message) : error;
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
