import { errorWithoutStack } from "./error-without-stack.js";
import type { TritonError } from "./triton-error.js";

const TEXT = "Request timeout expired";

/** The end of a request whose time is over, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return errorWithoutStack("UNAVAILABLE", TEXT);
}

/** Whether an error is that end. */
export function isTimeout({ code, message }: TritonError): boolean {
  return code === "UNAVAILABLE" && message === TEXT;
}
