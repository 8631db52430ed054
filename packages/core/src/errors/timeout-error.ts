import { errorWithoutStack } from "./error-without-stack.js";
import { TritonError } from "./triton-error.js";

const TEXT = "Request timeout expired";

/** How the text of a client's own time limit begins. */
const NO_ANSWER = "the server did not answer within ";

/** The end of a request whose time is over, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return errorWithoutStack("UNAVAILABLE", TEXT);
}

/** The end of a client's call that has reached its time limit. */
export function noAnswerError(timeoutMs: number): TritonError {
  return new TritonError("UNAVAILABLE", `${NO_ANSWER}${timeoutMs} ms`);
}

/** True for the error of a call that has reached a time limit: that of the server, or that of the client. */
export function isTimeout({ code, message }: TritonError): boolean {
  return code === "UNAVAILABLE" && (message === TEXT || message.startsWith(NO_ANSWER));
}
