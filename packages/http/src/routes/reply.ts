import { TritonError } from "@tritonjs/core";
import type { FastifyReply } from "fastify";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";
import { statusFromCode } from "../status-from-code.js";
import type { ContentType } from "./route.js";

const NO_BYTES = Buffer.alloc(0);

/** Answers with JSON. */
export function sendJson(reply: FastifyReply, value: PlainJson): void {
  reply.code(200).header("content-type", "application/json").send(toJsonBytes(value));
}

/** Answers with a status and no body. */
export function sendEmpty(reply: FastifyReply, status: number, contentType: ContentType): void {
  reply.code(status).header("content-type", contentType).send(NO_BYTES);
}

/** Answers with `{"error": message}`. */
export function sendFault(
  reply: FastifyReply,
  status: number,
  message: string,
  contentType: ContentType,
): void {
  reply
    .code(status)
    .header("content-type", contentType)
    .send(toJsonBytes({ error: message }));
}

/** Answers with an error. What is no `TritonError` is logged, not shown. */
export function sendError(reply: FastifyReply, thrown: unknown, contentType: ContentType): void {
  if (TritonError.is(thrown)) {
    sendFault(reply, statusFromCode(thrown.code), thrown.message, contentType);
    return;
  }
  reply.log.error(thrown);
  sendFault(reply, 500, "internal error", contentType);
}
