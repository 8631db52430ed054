import { type ReasonOf, TritonError } from "@tritonjs/protocol";

/** Makes the error of an invalid request. */
export function invalidArgument(message: string, reason?: ReasonOf<"INVALID_ARG">): TritonError {
  return new TritonError("INVALID_ARG", message, reason === undefined ? {} : { reason });
}
