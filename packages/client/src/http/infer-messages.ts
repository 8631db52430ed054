import {
  type AnswerJson,
  type AnswerJsonObject,
  type DataType,
  doubleText,
  elementCount,
  inputTensor,
  isDataType,
  isDescribed,
  isJsonObject,
  isOnlyBinary,
  type JsonSource,
  type Parameters,
  parseAnswerJson,
  type Shape,
  shapeToString,
  Tensor,
  TritonError,
  tensorFromValue,
  toJson,
} from "@tritonjs/protocol";
import { invalidAnswer } from "../caller.js";
import {
  isSharedMemoryInput,
  namedInputs,
  requestParameters,
  type SharedMemoryRange,
} from "../infer-request.js";
import { InferResult, malformedAnswer, type SharedMemoryOutput } from "../infer-result.js";
import type { HttpInferInput, InferCall, ModelCallOptions, OutputRequest } from "./client-options.js";
import { type CallRequest, excerpt, type HttpCalls } from "./http-calls.js";
import { modelPath } from "./http-carrier.js";

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
  const inputs = namedInputs(call.inputs).map(([name, input]) =>
    inputJson(name, input, binaryByDefault, tensors),
  );
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

/** Makes a flat JSON array of a tensor's elements. Throws for those without a JSON form. */
function tensorJson(name: string, { datatype, elements }: Tensor): string {
  if (isOnlyBinary(datatype)) {
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
    if (size > binary.length - used) throw malformedAnswer(`output '${name}' ends after the end of the body`);
    const tensor = toTensor(output, binary.subarray(used, used + size));
    if (tensor !== undefined) tensors.set(name, tensor);
    else sharedMemoryOutputs.set(name, { datatype: output.datatype, shape: output.shape });
    used += size;
  }
  if (used !== binary.length)
    throw malformedAnswer(`${binary.length - used} bytes do not belong to an output`);
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
  throw malformedAnswer(
    `Inference-Header-Content-Length: expected at most ${bodyLength}, the size of the body, got ${header}`,
  );
}

function readJson(bytes: Uint8Array): AnswerJsonObject {
  const body = new TextDecoder().decode(bytes);
  try {
    const json = parseAnswerJson(body);
    if (isJsonObject(json) && Array.isArray(json.outputs)) return json;
  } catch (cause) {
    throw malformedAnswer(`not JSON${excerpt(body)}`, cause);
  }
  throw malformedAnswer(`no outputs${excerpt(body)}`);
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
  if (!isJsonObject(output) || typeof output.name !== "string")
    throw malformedAnswer("an output has no name");
  const { name, datatype, shape, parameters, data } = output;
  if (!isDataType(datatype))
    throw malformedAnswer(`output '${name}': expected a known datatype, got '${String(datatype)}'`);
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isSafeInteger(dim) && (dim as number) >= 0)) {
    throw malformedAnswer(`output '${name}' has no shape`);
  }
  const size = isJsonObject(parameters) ? parameters.binary_data_size : undefined;
  if (size !== undefined && !(Number.isSafeInteger(size) && (size as number) >= 0)) {
    throw malformedAnswer(
      `output '${name}': expected a non-negative integer as binary_data_size, got ${String(size)}`,
    );
  }
  if (data !== undefined && !Array.isArray(data))
    throw malformedAnswer(`output '${name}': expected an array as data`);
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
    throw malformedAnswer(`output '${name}' of shape ${shapeToString(shape)}: ${why}`, cause);
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
    throw invalidAnswer(`expected ${elementCount(shape)} elements, got ${count}`);
}

/** Inputs of the model by name, and parameters beside them. */
export type GenerateInputs = Readonly<Record<string, JsonSource | undefined>>;

/** One response: outputs and parameters by name. An output of one element is that element, others are flat arrays. */
export interface GenerateResponse extends AnswerJsonObject {
  model_name: string;
  model_version: string;
}

export async function generate(
  calls: HttpCalls,
  modelName: string,
  inputs: GenerateInputs,
  { modelVersion, ...call }: ModelCallOptions,
): Promise<GenerateResponse> {
  const request = outgoing(modelPath(modelName, modelVersion, "generate"), inputs);
  const answer = await calls.request({ ...request, tellsLimit: true }, call);
  return toResponse(new TextDecoder().decode(answer.body));
}

export async function* generateStream(
  calls: HttpCalls,
  modelName: string,
  inputs: GenerateInputs,
  { modelVersion, ...call }: ModelCallOptions,
): AsyncGenerator<GenerateResponse, void, void> {
  const path = modelPath(modelName, modelVersion, "generate_stream");
  const chunks = await calls.stream(outgoing(path, inputs), "text/event-stream", call);
  for await (const event of readEvents(chunks)) yield toResponse(event);
}

function outgoing(path: string, inputs: GenerateInputs): CallRequest {
  const headers = { "content-type": "application/json" };
  return { method: "POST", path, headers, body: toJson(inputs), idempotent: false, balanced: true };
}

/** An error in an event, or with status 200, comes without its code. */
function toResponse(text: string): GenerateResponse {
  let json: AnswerJson;
  try {
    json = parseAnswerJson(text);
  } catch (cause) {
    throw invalidAnswer(`cannot read the server's response: expected JSON${excerpt(text)}`, cause);
  }
  if (!isJsonObject(json))
    throw invalidAnswer(`cannot read the server's response: expected an object${excerpt(text)}`);
  if (typeof json.error === "string" && json.model_name === undefined) {
    throw new TritonError("UNKNOWN", json.error);
  }
  return json as GenerateResponse;
}

/**
 * Yields the data of server-sent events. Lines end with CR, LF or both. Lines of `data` are joined. Comments and other
 * fields are skipped. An event that the end of the stream cuts off is yielded too, because its incomplete data reveals
 * the loss.
 */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const lines = new LineSplitter();
  let data: string[] = [];
  for await (const line of lines.split(chunks)) {
    if (line === "") {
      if (data.length > 0) yield data.join("\n");
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    } else if (line === "data") {
      data.push("");
    }
  }
  if (data.length > 0) yield data.join("\n");
}

const LINE_END = /\r\n|\r|\n/;

/** Splits text that comes in chunks into lines. A line is joined once it is complete. */
class LineSplitter {
  readonly #decoder = new TextDecoder();
  #parts: string[] = [];
  /** True when the last chunk ended with CR: an LF at the start of the next chunk belongs to it. */
  #skipLineFeed = false;

  async *split(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
    for await (const chunk of chunks) yield* this.#take(this.#decoder.decode(chunk, { stream: true }));
    yield* this.#take(this.#decoder.decode());
    if (this.#parts.length > 0) yield this.#parts.join("");
  }

  *#take(text: string): Generator<string, void, void> {
    if (text === "") return;
    const rest = this.#skipLineFeed && text.startsWith("\n") ? text.slice(1) : text;
    this.#skipLineFeed = text.endsWith("\r");
    const pieces = rest.split(LINE_END);
    for (const piece of pieces.slice(0, -1)) {
      this.#parts.push(piece);
      yield this.#parts.join("");
      this.#parts = [];
    }
    const last = pieces.at(-1)!;
    if (last !== "") this.#parts.push(last);
  }
}
