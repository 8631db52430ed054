import type { Socket } from "node:net";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";

/** Faults that Node's parser finds in the head of a request, and their answers. */
const answers: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_INVALID_METHOD: ["405 Method Not Allowed", "Method Not Allowed"],
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "Request Timeout"],
};

/** Milliseconds between such an answer and the end of the connection, if the client sends nothing more. */
const LINGER_MS = 1000;

/** Makes the body of the answer to a request that could not be parsed. */
export type ClientErrorBody = (message: string) => PlainJson;

/** Triton's form of an error. */
export const tritonErrorBody: ClientErrorBody = (message) => ({ error: message });

/** Answers a request that could not be parsed, and closes its connection. */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  bodyOf: ClientErrorBody = tritonErrorBody,
): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, message] = answers[error.code ?? ""] ?? ["400 Bad Request", "Bad Request"];
  const body = toJsonBytes(bodyOf(message));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  // A deliberately slow client will not hang up by itself, and may keep sending a body.
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") socket.destroySoon();
  else socket.setTimeout(LINGER_MS);
}
