import { errorWithoutStack } from "./error-without-stack.js";
import type { TritonError } from "./triton-error.js";

/** The error of a request that reached its time limit, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return errorWithoutStack("UNAVAILABLE", "Request timeout expired", { reason: "TIMEOUT" });
}

/** True for the error that `timeoutError` makes. */
export function isTimeout({ reason }: TritonError): boolean {
  return reason === "TIMEOUT";
}
