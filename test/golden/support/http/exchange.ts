import { connect, type Socket } from "node:net";
import { type RecordedRequest, requestBody } from "./http-case.js";
import { type HttpResponse, parseResponse } from "./parse-response.js";

/** Address of a server. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

const ANSWER_TIMEOUT_MS = 120_000;

/**
 * Sends a recorded request on a connection of its own, byte for byte, and reads the answer. `undefined` when the
 * server closes the connection without one.
 */
export function exchange(address: Address, request: RecordedRequest): Promise<HttpResponse | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(address.port, address.host);
    const received: Buffer[] = [];
    const finish = (closed: boolean): void => {
      const response = parseResponse(Buffer.concat(received), request.method, closed);
      if (response === undefined && !closed) return;
      clearTimeout(timer);
      socket.destroy();
      resolve(response);
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no answer to ${request.method} ${request.path} in ${ANSWER_TIMEOUT_MS} ms`));
    }, ANSWER_TIMEOUT_MS);
    socket.on("connect", () => send(socket, address, request));
    socket.on("data", (chunk) => {
      received.push(chunk);
      finish(false);
    });
    socket.on("end", () => finish(true));
    socket.on("error", () => finish(true));
  });
}

function send(socket: Socket, address: Address, request: RecordedRequest): void {
  const body = requestBody(request);
  const lines = [
    `${request.method} ${request.path} HTTP/${version(request)}`,
    `Host: ${address.host}:${address.port}`,
  ];
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of typeof value === "string" ? [value] : value) lines.push(`${name}: ${one}`);
  }
  if (request.chunks_b64 !== undefined) lines.push("Transfer-Encoding: chunked");
  else if (needsContentLength(request)) lines.push(`Content-Length: ${body?.length ?? 0}`);
  socket.write(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
  if (request.chunks_b64 !== undefined) socket.write(chunked(request.chunks_b64));
  else if (body !== undefined) socket.write(body);
}

function version(request: RecordedRequest): string {
  return (request.http_version ?? "1.1").replace("HTTP/", "");
}

function needsContentLength(request: RecordedRequest): boolean {
  if (request.no_content_length) return false;
  return requestBody(request) !== undefined || ["POST", "PUT", "PATCH"].includes(request.method);
}

function chunked(chunks: readonly string[]): Buffer {
  const parts = chunks.flatMap((chunk) => {
    const bytes = Buffer.from(chunk, "base64");
    return [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")];
  });
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}
