import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { EncodedResponse } from "../encode/infer-response.js";
import { compress, responseEncoding } from "../encode/response-encoding.js";

/** Up to this size copying the tensors behind the JSON is cheaper than another write. */
const MAX_COPIED = 1 << 20;

/** Sends an answer, compressed if the client prefers that. The header length counts uncompressed bytes. */
export async function sendInferResponse(
  reply: FastifyReply,
  { json, tensors }: EncodedResponse,
  acceptEncoding: string | undefined,
): Promise<void> {
  const binary = tensors.length > 0;
  reply.code(200).header("content-type", binary ? "application/octet-stream" : "application/json");
  if (binary) reply.header("inference-header-content-length", String(json.length));
  const parts = [json, ...tensors];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const encoding = responseEncoding(acceptEncoding);
  if (encoding !== "identity") {
    const body = await compress(Buffer.concat(parts, length), encoding);
    reply.header("content-encoding", encoding).send(body);
  } else if (!binary) reply.send(json);
  else if (length <= MAX_COPIED) reply.send(Buffer.concat(parts, length));
  else {
    reply.header("content-length", length).send(Readable.from(parts, { objectMode: false }));
  }
}
