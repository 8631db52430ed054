import { TritonError } from "@tritonjs/protocol";

/** The error for an option or an input file that cannot be used. */
export function invalidOption(message: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_OPTION", cause });
}
