import { encodeMessage, inference } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";
import { responseHead } from "./response-head.js";

/*
 * A response on the wire, without copying its outputs:
 *
 *   model | id, parameters | outputs | tag, length | contents | tag, length | contents | ...
 */

type ResponseMessage = inference.ModelInferResponse.$Properties;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** Largest size of a message, in bytes. */
export const MAX_MESSAGE_SIZE = 0x7fff_ffff;

type Parameters = NonNullable<ResponseMessage["parameters"]>;

const NO_BYTES = new Uint8Array(0);

/** Parameter that is true in the last response to a request on a stream. */
export const FINAL_RESPONSE = "triton_final_response";

const encodeFinal = (boolParam: boolean): Uint8Array =>
  encodeMessage(inference.ModelInferResponse, { parameters: { [FINAL_RESPONSE]: { boolParam } } });
const FINAL = encodeFinal(true);
const NOT_FINAL = encodeFinal(false);

const RAW_OUTPUT_CONTENTS_TAG = (6 << 3) | 2;
const INFER_RESPONSE_TAG = (2 << 3) | 2;

/**
 * Encodes a `ModelInferResponse`.
 *
 * @throws TritonError INVALID_ARG when it exceeds the largest size of a message.
 */
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
function ownFields(id: string, parameters: Parameters): Uint8Array {
  if (id !== "") return encodeMessage(inference.ModelInferResponse, { id, parameters });
  let count = 0;
  for (const _ in parameters) count++;
  if (count === 0) return NO_BYTES;
  const final = count === 1 ? parameters[FINAL_RESPONSE]?.boolParam : undefined;
  if (final == null) return encodeMessage(inference.ModelInferResponse, { parameters });
  return final ? FINAL : NOT_FINAL;
}

/** Encodes a `ModelStreamInferResponse`. */
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

/** Bytes of all parts together. */
export function partsByteLength(parts: readonly Uint8Array[]): number {
  let total = 0;
  for (const part of parts) total += part.byteLength;
  return total;
}

/** @throws TritonError INVALID_ARG for a response that exceeds the largest size of a message. */
function checkSize(size: number): void {
  if (size <= MAX_MESSAGE_SIZE) return;
  throw new TritonError(
    "INVALID_ARG",
    `Response has byte size ${size} which exceeds gRPC's byte size limit ${MAX_MESSAGE_SIZE}.`,
    { reason: "RESPONSE_TOO_LARGE" },
  );
}

/** Encodes a tag of one byte and a length as varints. */
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
