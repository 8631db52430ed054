import { classify, type InferenceResponse, type ReadyModel } from "@tritonjs/core/frontend";
import { errorFor, type Parameters, type Shape, sameShape, TritonError } from "@tritonjs/protocol";
import { encodeMessage, encodeParameter, inference } from "@tritonjs/protocol/grpc";
import type { DecodedMessage, OutputForms } from "./infer-request.js";

const NO_BYTES = new Uint8Array(0);

/**
 * Encodes a response, with each output in its requested form: classes instead of a tensor, or no contents for an output
 * in shared memory. Other contents are views of the tensors.
 *
 * @throws TritonError INVALID_ARG for an output that cannot be classified, INTERNAL for an output that is larger than
 * its range of shared memory.
 */
export function encodeInferResponse(
  model: ReadyModel,
  response: InferenceResponse,
  forms: OutputForms,
): inference.ModelInferResponse.$Properties {
  const outputs: inference.ModelInferResponse.InferOutputTensor.$Properties[] = [];
  const rawOutputContents: Uint8Array[] = [];
  for (const [name, output] of response.outputs) {
    const form = forms.get(name);
    const tensor =
      form?.classes === undefined
        ? output
        : classify(output, form.classes, model.config.maxBatchSize > 0, model.labels.get(name));
    form?.range?.put(name, tensor.bytes);
    outputs.push({ name, datatype: tensor.datatype, shape: tensor.shape as number[] });
    rawOutputContents.push(form?.range === undefined ? tensor.bytes : NO_BYTES);
  }
  return {
    modelName: response.modelName,
    modelVersion: response.modelVersion,
    id: response.id,
    parameters: encodeParameters(response.parameters),
    outputs,
    rawOutputContents,
  };
}

/** Encodes response parameters: whole numbers as int64, others as double. */
function encodeParameters(parameters: Parameters): Record<string, inference.InferParameter.$Properties> {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return {};
  return Object.fromEntries(entries.map(([key, value]) => [key, encodeParameter(value)]));
}

type Request = inference.ModelInferRequest;
type StreamReply = inference.ModelStreamInferResponse.$Properties;

export function encodeStreamReply(
  request: Request,
  model: ReadyModel,
  { outputs }: DecodedMessage,
  outcome: InferenceResponse | TritonError,
  final: boolean,
): StreamReply {
  if (TritonError.is(outcome)) return failedResponse(request, outcome, final);
  try {
    const inferResponse = encodeInferResponse(model, outcome, outputs);
    inferResponse.parameters![FINAL_RESPONSE] = { boolParam: final };
    return { inferResponse };
  } catch (error) {
    return failedResponse(request, TritonError.from(error), final);
  }
}

export function encodeEmptyFinal(request: Request): StreamReply {
  return { inferResponse: bareResponse(request, true) };
}

/** Encodes the error of a rejected request, with its id, so that the client can tell which request it was. */
export function encodeRefusal(request: Request, error: TritonError): StreamReply {
  return { errorMessage: error.message, inferResponse: { id: request.id } };
}

/** Encodes an error that came as a response; an error without a text is an empty response. */
function failedResponse(request: Request, error: TritonError, final: boolean): StreamReply {
  return { errorMessage: error.message, inferResponse: bareResponse(request, final) };
}

/** A response without outputs. Its version is the one in the client's request. */
function bareResponse(request: Request, final: boolean): inference.ModelInferResponse.$Properties {
  const { id, modelName, modelVersion } = request;
  return { id, modelName, modelVersion, parameters: { [FINAL_RESPONSE]: { boolParam: final } } };
}

/*
 * A response on the wire, without copying its outputs:
 *
 *   model | id, parameters | outputs | tag, length | contents | tag, length | contents | ...
 */

type ResponseMessage = inference.ModelInferResponse.$Properties;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

const MAX_MESSAGE_SIZE = 0x7fff_ffff;

type ParameterMessages = NonNullable<ResponseMessage["parameters"]>;

const NO_FIELDS = new Uint8Array(0);

/** Parameter that is true in the last response to a request on a stream. */
const FINAL_RESPONSE = "triton_final_response";

const encodeFinal = (boolParam: boolean): Uint8Array =>
  encodeMessage(inference.ModelInferResponse, { parameters: { [FINAL_RESPONSE]: { boolParam } } });
const FINAL = encodeFinal(true);
const NOT_FINAL = encodeFinal(false);

const RAW_OUTPUT_CONTENTS_TAG = (6 << 3) | 2;
const INFER_RESPONSE_TAG = (2 << 3) | 2;

export function encodeInferResponseParts(message: ResponseMessage): Uint8Array[] {
  const { rawOutputContents, id, parameters } = message;
  const head = responseHead(message);
  const parts: Uint8Array[] = [head.model];
  const own = ownFields(id ?? "", parameters ?? {});
  if (own.byteLength > 0) parts.push(own);
  if (head.outputs.byteLength > 0) parts.push(head.outputs);
  for (const contents of rawOutputContents ?? []) {
    parts.push(prefix(RAW_OUTPUT_CONTENTS_TAG, contents.byteLength));
    if (contents.byteLength > 0) parts.push(contents);
  }
  checkSize(partsByteLength(parts));
  return parts;
}

/** Encodes the id and the parameters of a response. Most responses on a stream have only the parameter "final". */
function ownFields(id: string, parameters: ParameterMessages): Uint8Array {
  if (id !== "") return encodeMessage(inference.ModelInferResponse, { id, parameters });
  let count = 0;
  for (const _ in parameters) count++;
  if (count === 0) return NO_FIELDS;
  const final = count === 1 ? parameters[FINAL_RESPONSE]?.boolParam : undefined;
  if (final == null) return encodeMessage(inference.ModelInferResponse, { parameters });
  return final ? FINAL : NOT_FINAL;
}

export function encodeStreamResponseParts(message: StreamMessage): Uint8Array[] {
  const { inferResponse, errorMessage } = message;
  const parts: Uint8Array[] = [];
  if (errorMessage) parts.push(encodeMessage(inference.ModelStreamInferResponse, { errorMessage }));
  if (inferResponse != null) {
    const response = encodeInferResponseParts(inferResponse);
    parts.push(prefix(INFER_RESPONSE_TAG, partsByteLength(response)), ...response);
  }
  return parts;
}

function partsByteLength(parts: readonly Uint8Array[]): number {
  let total = 0;
  for (const part of parts) total += part.byteLength;
  return total;
}

/** @throws TritonError INVALID_ARG for a response that exceeds the largest size of a message. */
function checkSize(size: number): void {
  if (size <= MAX_MESSAGE_SIZE) return;
  throw errorFor(
    "RESPONSE_TOO_LARGE",
    `Response has byte size ${size} which exceeds gRPC's byte size limit ${MAX_MESSAGE_SIZE}.`,
  );
}

function prefix(tag: number, length: number): Uint8Array {
  let size = 2;
  for (let rest = length; rest > 0x7f; rest = Math.floor(rest / 0x80)) size++;
  const bytes = new Uint8Array(size);
  bytes[0] = tag;
  let rest = length;
  for (let at = 1; at < size - 1; at++) {
    bytes[at] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  bytes[size - 1] = rest;
  return bytes;
}

type InferMessage = inference.ModelInferResponse.$Properties;
type Outputs = readonly inference.ModelInferResponse.InferOutputTensor.$Properties[];

/** Encoded fields of a response that are equal in the responses of a model with outputs of the same shapes. */
interface ResponseHead {
  readonly model: Uint8Array;
  /** Name, data type and shape of each output. */
  readonly outputs: Uint8Array;
}

interface KnownHead extends ResponseHead {
  readonly version: string;
  readonly described: Outputs;
}

const MAX_HEADS = 1024;

/** The last head of each model. Encoding one takes 1 µs. */
const heads = new Map<string, KnownHead>();

/** Encodes the head of a response, unless that of the model's last response is the same. */
export function responseHead({ modelName, modelVersion, outputs }: InferMessage): ResponseHead {
  const [name, version, described] = [modelName ?? "", modelVersion ?? "", outputs ?? []];
  const known = heads.get(name);
  if (known !== undefined && known.version === version && sameOutputs(known.described, described))
    return known;
  const head = {
    model: encodeMessage(inference.ModelInferResponse, { modelName: name, modelVersion: version }),
    outputs: encodeMessage(inference.ModelInferResponse, { outputs: described as never }),
    version,
    // The model may change its shapes later.
    described: described.map((output) => ({ ...output, shape: [...(output.shape ?? [])] })),
  };
  // A response without outputs is an error, whose version is the client's text.
  if (described.length === 0) return head;
  if (heads.size >= MAX_HEADS) heads.clear();
  heads.set(name, head);
  return head;
}

function sameOutputs(some: Outputs, others: Outputs): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) {
    const [one, other] = [some[i]!, others[i]!];
    if (one.name !== other.name || one.datatype !== other.datatype) return false;
    if (!sameShape((one.shape ?? []) as Shape, (other.shape ?? []) as Shape)) return false;
  }
  return true;
}
