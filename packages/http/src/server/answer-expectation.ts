import type { ServerResponse } from "node:http";

/**
 * Tells a client with `Expect: 100-continue` to send its body, once it is the turn of its answer. Node.js would write this
 * between the head and the body of an answer that has to wait for an earlier one of the connection.
 */
export function answerExpectation(response: ServerResponse): void {
  if (response.socket !== null) {
    response.writeContinue();
    return;
  }
  response.once("socket", () => {
    if (!response.headersSent) response.writeContinue();
  });
}
