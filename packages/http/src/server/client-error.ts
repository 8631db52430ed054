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
  socket.write(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  lingeringClose(socket);
}
