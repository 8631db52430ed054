import { TritonError } from "@tritonjs/protocol";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";
import { statusFromCode } from "../status-from-code.js";
import type { V2Request } from "./request.js";

/** What answers that are not tensors are sent as. The body of an error is JSON under either. */
export type ContentType = "application/json" | "text/plain";

/** One answer, ready to be sent by whichever server received the request. */
export interface V2Response {
  readonly status: number;
  /** By lower-case name. The length of the body is left to the server. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes, pieces of one whole, or pieces that are still to come: those go out as they come, in chunks. */
  readonly body: Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>;
}

const NO_BYTES = new Uint8Array(0);

/** An answer in JSON. */
export function jsonResponse(value: PlainJson): V2Response {
  return { status: 200, headers: { "content-type": "application/json" }, body: toJsonBytes(value) };
}

/** A status and no body. */
export function emptyResponse(status: number, contentType: ContentType): V2Response {
  return { status, headers: { "content-type": contentType }, body: NO_BYTES };
}

/** `{"error": message}`. */
export function faultResponse(
  status: number,
  message: string,
  contentType: ContentType,
  headers: V2Response["headers"] = {},
): V2Response {
  return {
    status,
    headers: { "content-type": contentType, ...headers },
    body: toJsonBytes({ error: message }),
  };
}

/** The answer to an error. What is no `TritonError` is reported to the host, not shown. */
export function errorResponse(
  request: Pick<V2Request, "report">,
  thrown: unknown,
  contentType: ContentType,
  headers?: V2Response["headers"],
): V2Response {
  if (TritonError.is(thrown)) {
    const { retryAfterMs } = thrown;
    // Whole seconds are all that the header can say.
    const hint: V2Response["headers"] =
      retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
    return faultResponse(statusFromCode(thrown.code), thrown.message, contentType, { ...hint, ...headers });
  }
  request.report(thrown);
  return faultResponse(500, "internal error", contentType, headers);
}

/** Up to this size copying pieces together is cheaper than handing each of them on. */
const MAX_COPIED = 1 << 20;

/** Pieces as one, unless they are large. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array | undefined {
  const length = byteLength(pieces);
  return length <= MAX_COPIED ? Buffer.concat(pieces, length) : undefined;
}

/** Bytes of all pieces together. */
export function byteLength(pieces: readonly Uint8Array[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return length;
}

/** True for pieces that are all there. */
export function isWhole(body: V2Response["body"]): body is readonly Uint8Array[] {
  return Array.isArray(body);
}
