import { TritonError } from "@tritonjs/protocol";

/** The error for a file that is not a valid model. */
export function invalidModel(text: string): TritonError {
  return new TritonError("INVALID_ARG", text, { reason: "INVALID_MODEL" });
}

/** The error for a valid model that cannot be served. */
export function notSupported(text: string): TritonError {
  return new TritonError("UNSUPPORTED", text, { reason: "MODEL_NOT_SUPPORTED" });
}
