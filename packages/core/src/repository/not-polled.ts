import { TritonError } from "../errors/triton-error.js";

/** What a client is told of a model that could not be read; the cause stays here. */
export function notPolled(name: string, cause: unknown): TritonError {
  const text = `failed to load '${name}', failed to poll from model repository`;
  return new TritonError("INTERNAL", text, { reason: "FILE_NOT_READABLE", cause });
}
