import { type ReasonOf, TritonError } from "@tritonjs/protocol";

/** The error of a request that cannot be understood. */
export function invalidArgument(message: string, reason?: ReasonOf<"INVALID_ARG">): TritonError {
  return new TritonError("INVALID_ARG", message, reason === undefined ? {} : { reason });
}
