import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isWhole, type V2Response } from "../exchange/response.js";

/** Sends an answer through fastify, and so past the hooks of the application. */
export function sendResponse(request: FastifyRequest, reply: FastifyReply, response: V2Response): void {
  const { status, headers, body } = response;
  reply.code(status).headers(headers as Record<string, string>);
  if (body instanceof Uint8Array) reply.send(body);
  else if (isWhole(body)) {
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    reply.header("content-length", length).send(Readable.from(body, { objectMode: false }));
  } else {
    // HTTP/1.0 has no chunks: its body ends with the connection. HTTP/2 has frames.
    if (request.raw.httpVersion === "1.1") reply.header("transfer-encoding", "chunked");
    reply.send(Readable.from(body, { objectMode: false }));
  }
}
