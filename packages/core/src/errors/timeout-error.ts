import { TritonError } from "./triton-error.js";

/** The end of a request whose time is over, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return new TritonError("UNAVAILABLE", "Request timeout expired");
}
