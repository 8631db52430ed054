import type { V2Response } from "@tritonjs/http/frontend";
import { isOutOfMemory } from "./out-of-memory.js";

/** Bytes of an error that are searched. */
const LOOKED_AT = 64 * 1024;

/** Changes the status of an out-of-memory error to 507. The platform then unloads another model. */
export function withInsufficientStorage(response: V2Response): V2Response {
  const { status, body } = response;
  if (status < 400 || !(body instanceof Uint8Array)) return response;
  const text = Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, LOOKED_AT)).toString("latin1");
  return isOutOfMemory(text) ? { ...response, status: 507 } : response;
}
