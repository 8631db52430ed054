import { encodeParameter, type inference } from "@tritonjs/grpc-messages";
import { inputTensor } from "@tritonjs/protocol";
import { requestParameters } from "../../infer/request-parameters.js";
import {
  type InferInput,
  isSharedMemoryInput,
  type RequestOptions,
  type SharedMemoryRange,
} from "../../options/infer-options.js";
import type { InferCall, OutputRequest, StreamInferRequest } from "./infer-options.js";

type RequestMessage = inference.ModelInferRequest.$Properties;
type Parameters = Record<string, inference.InferParameter.$Properties>;

/**
 * Encodes an inference. Tensors travel as raw contents, which are views of the given arrays.
 *
 * @throws TritonError INVALID_ARG for inputs and parameters that cannot be sent.
 */
export function encodeInferRequest(modelName: string, call: InferCall): RequestMessage {
  const rawInputContents: Uint8Array[] = [];
  const inputs = Object.entries(call.inputs)
    .filter(([, input]) => input !== undefined)
    .map(([name, input]) => inputMessage(name, input, rawInputContents));
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

/**
 * Encodes the `parameters` of an infer request as messages.
 *
 * @throws TritonError INVALID_ARG for a custom parameter with a name that the protocol reserves.
 */
function parameterMessages(options: RequestOptions): Parameters {
  const all: Parameters = Object.create(null);
  for (const [name, value] of Object.entries(requestParameters(options))) all[name] = encodeParameter(value);
  // The protocol gives these two a type that their values do not show.
  if (all.priority !== undefined) all.priority = { uint64Param: options.priority! };
  if (all.timeout !== undefined) all.timeout = { int64Param: options.queueTimeoutMicroseconds! };
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
