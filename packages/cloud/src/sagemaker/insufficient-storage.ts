import type { V2Response } from "@tritonjs/http/frontend";
import { isOutOfMemory } from "./out-of-memory.js";

/** Bytes of an error that are looked at. */
const LOOKED_AT = 64 * 1024;

/** The answer with 507 if it is an error that says that memory is used up: the platform then makes room. */
export function withInsufficientStorage(response: V2Response): V2Response {
  const { status, body } = response;
  if (status < 400 || !(body instanceof Uint8Array)) return response;
  const text = Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, LOOKED_AT)).toString("latin1");
  return isOutOfMemory(text) ? { ...response, status: 507 } : response;
}
