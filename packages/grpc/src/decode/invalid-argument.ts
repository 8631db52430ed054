import { TritonError } from "@tritonjs/core";

/** The error of a request that cannot be understood. */
export function invalidArgument(message: string): TritonError {
  return new TritonError("INVALID_ARG", message);
}
