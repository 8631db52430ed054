import {
  doubleText,
  inputTensor,
  isDescribed,
  type Shape,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { requestParameters } from "../../infer/request-parameters.js";
import { isSharedMemoryInput, type SharedMemoryRange } from "../../options/infer-options.js";
import { type JsonSource, toJson } from "../json/write-json.js";
import type { HttpInferInput, InferCall, OutputRequest } from "./infer-options.js";

/** The body of an infer request. */
export interface EncodedInferRequest {
  /** JSON, then the binary tensors in the order of the inputs. */
  readonly body: Uint8Array<ArrayBuffer>;
  /** Bytes of the JSON: the header `Inference-Header-Content-Length`. Undefined for a body of JSON alone. */
  readonly jsonLength: number | undefined;
}

/**
 * Encodes an inference, for programs that send it themselves.
 *
 * @param binary form of tensors for which neither the input nor the call names one
 * @throws TritonError INVALID_ARG for inputs and parameters that cannot be sent.
 * @example
 * ```ts
 * const { body, jsonLength } = encodeInferRequest({ inputs: { x: Float32Array.of(1, 2) } });
 * ```
 */
export function encodeInferRequest(call: InferCall, binary = true): EncodedInferRequest {
  const binaryByDefault = call.binary ?? binary;
  const tensors: Uint8Array[] = [];
  const inputs = Object.entries(call.inputs)
    .filter(([, input]) => input !== undefined)
    .map(([name, input]) => inputJson(name, input, binaryByDefault, tensors));
  const outputs = call.outputs?.map((output) => outputJson(output, binaryByDefault));
  const parameters = requestParameters(call);
  if (binaryByDefault && outputs === undefined) parameters.binary_data_output = true;
  const members = [`"inputs":[${inputs.join(",")}]`];
  if (outputs !== undefined) members.push(`"outputs":${toJson(outputs)}`);
  if (Object.keys(parameters).length > 0) members.unshift(`"parameters":${toJson(parameters)}`);
  if (call.id !== undefined && call.id !== "") members.unshift(`"id":${toJson(call.id)}`);
  const json = new TextEncoder().encode(`{${members.join(",")}}`);
  return tensors.length === 0
    ? { body: json, jsonLength: undefined }
    : { body: concat([json, ...tensors]), jsonLength: json.length };
}

function inputJson(
  name: string,
  input: HttpInferInput,
  binaryByDefault: boolean,
  tensors: Uint8Array[],
): string {
  if (isSharedMemoryInput(input)) {
    const { datatype, shape, sharedMemory } = input;
    return `{${head(name, datatype, shape)},"parameters":${toJson(sharedMemoryJson(sharedMemory))}}`;
  }
  const tensor = inputTensor(name, input);
  const binary = (isDescribed(input) ? input.binary : undefined) ?? binaryByDefault;
  const start = head(name, tensor.datatype, tensor.shape);
  if (!binary) return `{${start},"data":${tensorJson(name, tensor)}}`;
  tensors.push(tensor.bytes);
  return `{${start},"parameters":{"binary_data_size":${tensor.bytes.length}}}`;
}

function head(name: string, datatype: string, shape: Shape): string {
  return `"name":${toJson(name)},"datatype":"${datatype}","shape":[${shape.join(",")}]`;
}

/**
 * Makes a flat JSON array of the elements of a tensor.
 *
 * @throws TritonError INVALID_ARG for elements without a JSON form: FP16, BF16, and bytes that are not UTF-8.
 */
function tensorJson(name: string, { datatype, elements }: Tensor): string {
  if (datatype === "FP16" || datatype === "BF16") {
    throw new TritonError(
      "INVALID_ARG",
      `input '${name}': cannot send ${datatype} as JSON; send it as binary`,
      {
        reason: "INVALID_INPUT",
      },
    );
  }
  if (Array.isArray(elements)) return `[${elements.map((bytes) => stringJson(name, bytes)).join(",")}]`;
  const toText =
    datatype === "FP32" || datatype === "FP64"
      ? (doubleText as (value: number | bigint) => string)
      : datatype === "BOOL"
        ? (value: number | bigint) => (value ? "true" : "false")
        : String;
  return `[${Array.from(elements as ArrayLike<number | bigint>, toText).join(",")}]`;
}

function stringJson(name: string, bytes: Uint8Array): string {
  try {
    return JSON.stringify(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    const message = `input '${name}': cannot send an element as JSON, because it is not UTF-8; send it as binary`;
    throw new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT", cause });
  }
}

function outputJson(output: string | OutputRequest, binaryByDefault: boolean): JsonSource {
  const {
    name,
    binary = binaryByDefault,
    classes,
    sharedMemory,
  }: OutputRequest = typeof output === "string" ? { name: output } : output;
  if (sharedMemory !== undefined) return { name, parameters: sharedMemoryJson(sharedMemory) };
  return { name, parameters: { binary_data: binary, classification: classes || undefined } };
}

function sharedMemoryJson({ region, byteSize, offset }: SharedMemoryRange): JsonSource {
  return {
    shared_memory_region: region,
    shared_memory_byte_size: byteSize,
    shared_memory_offset: offset || undefined,
  };
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
