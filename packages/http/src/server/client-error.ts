import type { Socket } from "node:net";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";
import { lingeringClose } from "./lingering-close.js";

/** Faults that Node's parser finds in the head of a request, and their answers. */
const answers: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_INVALID_METHOD: ["405 Method Not Allowed", "Method Not Allowed"],
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "Request Timeout"],
};

/** Makes the body of the answer to a request that could not be parsed. */
export type ClientErrorBody = (message: string) => PlainJson;

/** Triton's form of an error. */
export const tritonErrorBody: ClientErrorBody = (message) => ({ error: message });

/**
 * Answers a request that could not be parsed, and closes its connection.
 *
 * @param hasBegun whether a part of another answer to the request was sent already; then only the connection ends
 */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  hasBegun: boolean,
  bodyOf: ClientErrorBody = tritonErrorBody,
): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  if (!hasBegun) socket.write(answerTo(error, bodyOf));
  lingeringClose(socket);
}

function answerTo(error: NodeJS.ErrnoException, bodyOf: ClientErrorBody): string {
  const [status, message] = answers[error.code ?? ""] ?? ["400 Bad Request", "Bad Request"];
  const body = toJsonBytes(bodyOf(message));
  return (
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
    `Connection: close\r\n\r\n${body}`
  );
}
