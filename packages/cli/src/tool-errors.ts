import { TritonError } from "@tritonjs/protocol";

/** The error for an option or an input file that cannot be used. */
export function invalidOption(message: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_OPTION", cause });
}

/** Whether a server lacks the operation that it was asked for, or does not know the model. */
export function isUnknownToServer(error: unknown): boolean {
  return TritonError.is(error) && (error.code === "NOT_FOUND" || error.code === "UNSUPPORTED");
}
