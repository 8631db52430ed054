import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { byteLength, isWhole, joined, type V2Response } from "../exchange/response.js";

/** Sends an answer through fastify, and so past the hooks of the application. */
export function sendResponse(request: FastifyRequest, reply: FastifyReply, response: V2Response): void {
  const { status, headers } = response;
  const body = isWhole(response.body) ? (joined(response.body) ?? response.body) : response.body;
  reply.code(status).headers(headers as Record<string, string>);
  if (body instanceof Uint8Array) reply.send(body);
  else if (isWhole(body)) {
    reply.header("content-length", byteLength(body)).send(Readable.from(body, { objectMode: false }));
  } else {
    // HTTP/1.0 has no chunks: its body ends with the connection. HTTP/2 has frames.
    if (request.raw.httpVersion === "1.1") reply.header("transfer-encoding", "chunked");
    reply.send(Readable.from(body, { objectMode: false }));
  }
}
