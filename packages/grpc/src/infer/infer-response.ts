import {
  errorFor,
  NO_PARAMETERS,
  type Parameters,
  type Shape,
  sameShape,
  TritonError,
} from "@tritonjs/protocol";
import { encodeMessage, encodeParameter, inference } from "@tritonjs/protocol/grpc";
import { classify, type InferenceResponse, type ReadyModel } from "@tritonjs/server";
import type { DecodedMessage, OutputForms } from "./infer-request.js";

const NO_BYTES = new Uint8Array(0);

/**
 * Encodes a response, with each output in its requested form: classes instead of a tensor, or no contents for an output
 * in shared memory. Other contents are views of the tensors.
 *
 * @param final whether the response is the last one to its request; undefined outside of streams
 * @throws TritonError INVALID_ARG for an output that cannot be classified, INTERNAL for an output that is larger than
 * its range of shared memory.
 */
export function encodeInferResponse(
  model: ReadyModel,
  response: InferenceResponse,
  forms: OutputForms,
  final?: boolean,
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
    parameters: encodeParameters(response.parameters, final),
    outputs,
    rawOutputContents,
  };
}

type ParameterMessages = Record<string, inference.InferParameter.$Properties>;

/** Parameter that is true in the last response to a request on a stream. */
const FINAL_RESPONSE = "triton_final_response";

/** The parameters of most responses. */
const NONE: ParameterMessages = {};
const ONLY_FINAL: ParameterMessages = { [FINAL_RESPONSE]: { boolParam: true } };
const ONLY_NOT_FINAL: ParameterMessages = { [FINAL_RESPONSE]: { boolParam: false } };

/** Encodes response parameters: whole numbers as int64, others as double. */
function encodeParameters(parameters: Parameters, final: boolean | undefined): ParameterMessages {
  const finality = final === undefined ? NONE : final ? ONLY_FINAL : ONLY_NOT_FINAL;
  if (parameters === NO_PARAMETERS) return finality;
  const entries = Object.entries(parameters).map(([key, value]) => [key, encodeParameter(value)]);
  return { ...Object.fromEntries(entries), ...finality };
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
    return { inferResponse: encodeInferResponse(model, outcome, outputs, final) };
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
  return { id, modelName, modelVersion, parameters: final ? ONLY_FINAL : ONLY_NOT_FINAL };
}

/*
 * A response on the wire, without copying its outputs:
 *
 *   model | id, parameters | outputs | tag, length | contents | tag, length | contents | ...
 */

type ResponseMessage = inference.ModelInferResponse.$Properties;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

const MAX_MESSAGE_SIZE = 0x7fff_ffff;

const NO_FIELDS = new Uint8Array(0);
const FINAL = encodeMessage(inference.ModelInferResponse, { parameters: ONLY_FINAL });
const NOT_FINAL = encodeMessage(inference.ModelInferResponse, { parameters: ONLY_NOT_FINAL });

const RAW_OUTPUT_CONTENTS_TAG = (6 << 3) | 2;
const INFER_RESPONSE_TAG = (2 << 3) | 2;

export function encodeInferResponseParts(message: ResponseMessage): Uint8Array[] {
  const parts: Uint8Array[] = [];
  addResponseParts(message, parts);
  return parts;
}

/** @returns the bytes of the parts */
function addResponseParts(message: ResponseMessage, parts: Uint8Array[]): number {
  const { rawOutputContents, id, parameters } = message;
  const head = responseHead(message);
  parts.push(head.model);
  const own = ownFields(id ?? "", parameters ?? NONE);
  if (own.byteLength > 0) parts.push(own);
  if (head.outputs.byteLength > 0) parts.push(head.outputs);
  for (const contents of rawOutputContents ?? []) {
    parts.push(prefix(RAW_OUTPUT_CONTENTS_TAG, contents.byteLength));
    if (contents.byteLength > 0) parts.push(contents);
  }
  let byteLength = 0;
  for (const part of parts) byteLength += part.byteLength;
  checkSize(byteLength);
  return byteLength;
}

/** Encodes the id and the parameters of a response. */
function ownFields(id: string, parameters: ParameterMessages): Uint8Array {
  if (id !== "") return encodeMessage(inference.ModelInferResponse, { id, parameters });
  if (parameters === NONE) return NO_FIELDS;
  if (parameters === ONLY_FINAL) return FINAL;
  return parameters === ONLY_NOT_FINAL
    ? NOT_FINAL
    : encodeMessage(inference.ModelInferResponse, { parameters });
}

export function encodeStreamResponseParts(message: StreamMessage): Uint8Array[] {
  const { inferResponse, errorMessage } = message;
  const parts: Uint8Array[] = [];
  if (inferResponse != null) {
    parts.push(NO_FIELDS);
    parts[0] = prefix(INFER_RESPONSE_TAG, addResponseParts(inferResponse, parts));
  }
  if (errorMessage) parts.unshift(encodeMessage(inference.ModelStreamInferResponse, { errorMessage }));
  return parts;
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
