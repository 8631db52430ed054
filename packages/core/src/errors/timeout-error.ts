import { errorWithoutStack } from "./error-without-stack.js";
import type { TritonError } from "./triton-error.js";

/** The end of a request whose time is over, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return errorWithoutStack("UNAVAILABLE", "Request timeout expired");
}
