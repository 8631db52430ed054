import { encodeMessage, inference } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";

/*
 * A response on the wire, without copying its outputs:
 *
 *   head: every field but the raw contents | tag, length | contents | tag, length | contents | ...
 */

type ResponseMessage = inference.ModelInferResponse.$Properties;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** Largest size of a message, in bytes. */
export const MAX_MESSAGE_SIZE = 0x7fff_ffff;

const RAW_OUTPUT_CONTENTS_TAG = (6 << 3) | 2;
const INFER_RESPONSE_TAG = (2 << 3) | 2;

/**
 * Encodes a `ModelInferResponse`.
 *
 * @throws TritonError INVALID_ARG when it exceeds the largest size of a message.
 */
export function encodeInferResponseParts(message: ResponseMessage): Uint8Array[] {
  const { rawOutputContents, modelName, modelVersion, id, parameters, outputs } = message;
  const head: ResponseMessage = { modelName, modelVersion, id, parameters, outputs };
  const parts: Uint8Array[] = [encodeMessage(inference.ModelInferResponse, head)];
  for (const contents of rawOutputContents ?? []) {
    parts.push(prefix(RAW_OUTPUT_CONTENTS_TAG, contents.byteLength));
    if (contents.byteLength > 0) parts.push(contents);
  }
  checkSize(partsByteLength(parts));
  return parts;
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
  return parts.reduce((total, part) => total + part.byteLength, 0);
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

/** Encodes a tag and a length as varints. */
function prefix(tag: number, length: number): Uint8Array {
  const bytes = [tag];
  let rest = length;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return Uint8Array.from(bytes);
}
