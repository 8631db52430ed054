import { errorFor, type TritonError } from "@tritonjs/protocol";

/** The error for an option or an input file that cannot be used. */
export function invalidOption(message: string, cause?: unknown): TritonError {
  return errorFor("INVALID_OPTION", message, { cause });
}
