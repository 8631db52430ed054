import {
  type DataType,
  elementCount,
  isDataType,
  type Parameters,
  type Shape,
  shapeToString,
  Tensor,
  TritonError,
  tensorFromValue,
} from "@tritonjs/protocol";
import { InferResult, type SharedMemoryOutput } from "../../infer/infer-result.js";
import { excerpt } from "../carrier/answer-error.js";
import { type AnswerJson, type AnswerJsonObject, isObject, parseAnswerJson } from "../json/parse-json.js";

/** The answer to an inference over HTTP. */
export interface InferResponse {
  /** The JSON of the answer, without the bytes after it. */
  readonly json: AnswerJsonObject;
  readonly headers: Headers;
}

/**
 * Decodes the answer to an inference, for programs that receive it themselves.
 *
 * @param headers headers of the answer: `Inference-Header-Content-Length` is the offset of the tensors after the JSON
 * @throws TritonError INTERNAL for a body that is not an answer to an inference.
 */
export function decodeInferResponse(body: Uint8Array, headers: Headers): InferResult<InferResponse> {
  const jsonLength = readLength(headers.get("inference-header-content-length"), body.length);
  const json = readJson(body.subarray(0, jsonLength));
  const binary = body.subarray(jsonLength);
  const tensors = new Map<string, Tensor>();
  const sharedMemoryOutputs = new Map<string, SharedMemoryOutput>();
  let used = 0;
  for (const output of (json.outputs as AnswerJson[]).map(readOutput)) {
    const { name, size = 0 } = output;
    if (size > binary.length - used) throw malformed(`output '${name}' ends after the end of the body`);
    const tensor = toTensor(output, binary.subarray(used, used + size));
    if (tensor !== undefined) tensors.set(name, tensor);
    else sharedMemoryOutputs.set(name, { datatype: output.datatype, shape: output.shape });
    used += size;
  }
  if (used !== binary.length) throw malformed(`${binary.length - used} bytes do not belong to an output`);
  return new InferResult({
    id: text(json.id),
    modelName: text(json.model_name),
    modelVersion: text(json.model_version),
    parameters: (json.parameters ?? {}) as Parameters,
    tensors,
    sharedMemoryOutputs,
    response: { json, headers },
  });
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function readLength(header: string | null, bodyLength: number): number {
  if (header === null) return bodyLength;
  const length = /^\d+$/.test(header) ? Number(header) : -1;
  if (length >= 0 && length <= bodyLength) return length;
  throw malformed(
    `Inference-Header-Content-Length: expected at most ${bodyLength}, the size of the body, got ${header}`,
  );
}

function readJson(bytes: Uint8Array): AnswerJsonObject {
  const body = new TextDecoder().decode(bytes);
  try {
    const json = parseAnswerJson(body);
    if (isObject(json) && Array.isArray(json.outputs)) return json;
  } catch (cause) {
    throw malformed(`not JSON${excerpt(body)}`, cause);
  }
  throw malformed(`no outputs${excerpt(body)}`);
}

interface Output {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: Shape;
  /** Number of bytes after the JSON. */
  readonly size: number | undefined;
  readonly data: AnswerJson[] | undefined;
}

function readOutput(output: AnswerJson): Output {
  if (!isObject(output) || typeof output.name !== "string") throw malformed("an output has no name");
  const { name, datatype, shape, parameters, data } = output;
  if (!isDataType(datatype))
    throw malformed(`output '${name}': expected a known datatype, got '${String(datatype)}'`);
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isSafeInteger(dim) && (dim as number) >= 0)) {
    throw malformed(`output '${name}' has no shape`);
  }
  const size = isObject(parameters) ? parameters.binary_data_size : undefined;
  if (size !== undefined && !(Number.isSafeInteger(size) && (size as number) >= 0)) {
    throw malformed(
      `output '${name}': expected a non-negative integer as binary_data_size, got ${String(size)}`,
    );
  }
  if (data !== undefined && !Array.isArray(data))
    throw malformed(`output '${name}': expected an array as data`);
  return { name, datatype, shape: shape as number[], size: size as number | undefined, data };
}

/** An output in shared memory has neither bytes nor data. */
function toTensor(output: Output, bytes: Uint8Array): Tensor | undefined {
  const { name, shape, size, data } = output;
  try {
    if (size !== undefined) return fromBytes(output, bytes);
    return data === undefined ? undefined : fromJson(output, data);
  } catch (cause) {
    const why = TritonError.from(cause).message;
    throw malformed(`output '${name}' of shape ${shapeToString(shape)}: ${why}`, cause);
  }
}

function fromBytes({ datatype, shape }: Output, bytes: Uint8Array): Tensor {
  const tensor = Tensor.fromBytes(datatype, shape, bytes);
  checkCount(shape, tensor.elements.length);
  return tensor;
}

/** The nesting of data does not matter, only its order. */
function fromJson({ name, datatype, shape }: Output, data: AnswerJson[]): Tensor {
  const flat = Array.isArray(data[0])
    ? ((data as unknown[]).flat(Number.POSITIVE_INFINITY) as AnswerJson[])
    : data;
  checkCount(shape, flat.length);
  const floating = datatype === "FP32" || datatype === "FP64";
  const values = floating ? flat.map((value) => (typeof value === "bigint" ? Number(value) : value)) : flat;
  return tensorFromValue(values, { what: `output '${name}'`, datatype, shape: [-1] }).reshaped(shape);
}

function checkCount(shape: Shape, count: number): void {
  if (count !== elementCount(shape))
    throw new TritonError("INTERNAL", `expected ${elementCount(shape)} elements, got ${count}`, {
      reason: "INVALID_ANSWER",
    });
}

function malformed(message: string, cause?: unknown): TritonError {
  return new TritonError("INTERNAL", `cannot read the server's answer as an inference response: ${message}`, {
    reason: "INVALID_ANSWER",
    cause,
  });
}
