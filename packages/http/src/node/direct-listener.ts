import type { RequestListener, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { freeWhenSent } from "@tritonjs/core/frontend";
import { latin1Text } from "../exchange/latin1-text.js";
import { byteLength, isWhole, type V2Response } from "../exchange/response.js";
import type { V2Handler } from "../v2/v2-handler.js";
import { NodeV2Request } from "./node-request.js";

/** Answers the requests of a Node server directly, without fastify. */
export function answerDirectly(handler: V2Handler): RequestListener {
  return async (incoming, outgoing) => {
    try {
      const response = await handler(new NodeV2Request(incoming, outgoing, ""));
      if (response !== undefined) sendAnswer(outgoing, response);
    } catch (error) {
      outgoing.destroy(error as Error);
    }
  };
}

/** Bytes up to which a body is sent in one piece with its headers. */
const MAX_TEXT = 4096;

/** Sends an answer with one system call, unless parts of it are still to come. */
function sendAnswer(outgoing: ServerResponse, { status, headers, body }: V2Response): void {
  const lines: string[] = [];
  for (const name in headers) lines.push(name, headers[name]!);
  if (!(body instanceof Uint8Array) && !isWhole(body)) {
    outgoing.writeHead(status, lines);
    // If the client leaves, the body ends. If the body breaks off, the connection ends.
    pipeline(Readable.from(body, { objectMode: false }), outgoing, () => {});
    return;
  }
  const pieces = isWhole(body) ? body : [body];
  const length = byteLength(pieces);
  lines.push("content-length", String(length));
  outgoing.writeHead(status, lines);
  if (length <= MAX_TEXT) {
    outgoing.end(latin1(pieces), "latin1");
  } else {
    outgoing.cork();
    for (const piece of pieces) outgoing.write(piece, freeWhenSent(piece));
    outgoing.end();
  }
}

/** Pieces as text in which each character is a byte: Node appends text to the headers, and sends both in one piece. */
function latin1(pieces: readonly Uint8Array[]): string {
  let text = "";
  for (const piece of pieces) text += latin1Text(piece);
  return text;
}
