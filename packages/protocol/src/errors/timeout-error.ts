import { errorWithoutStack } from "./error-without-stack.js";
import { TritonError } from "./triton-error.js";

/** Triton's text for the error of a request that reached its time limit. */
export const TIMEOUT_TEXT = "Request timeout expired";

/** The error of a request that reached its time limit, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return errorWithoutStack("UNAVAILABLE", TIMEOUT_TEXT, { reason: "TIMEOUT" });
}

/** The error of a client's call that has reached its time limit. */
export function noAnswerError(timeoutMs: number): TritonError {
  return new TritonError("UNAVAILABLE", `the server did not answer within ${timeoutMs} ms`, {
    reason: "CLIENT_TIMEOUT",
  });
}

/** True for the error of a call that has reached a time limit of the server or of the client. */
export function isTimeout({ reason }: TritonError): boolean {
  return reason === "TIMEOUT" || reason === "CLIENT_TIMEOUT";
}
