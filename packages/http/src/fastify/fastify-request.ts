import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { V2Request } from "../exchange/request.js";
import { readMessage } from "./read-message.js";

/** A request that fastify received. Its body is still unread. */
export class FastifyV2Request implements V2Request {
  readonly method: string;
  readonly path: string;
  readonly rawHeaders: readonly string[];
  readonly #request: FastifyRequest;
  readonly #response: ServerResponse;

  constructor(request: FastifyRequest, reply: FastifyReply, prefix: string) {
    this.#request = request;
    this.#response = reply.raw;
    this.method = request.method;
    this.path = pathOf(request.raw.url ?? "", prefix);
    this.rawHeaders = request.raw.rawHeaders;
  }

  get gone(): boolean {
    return this.#response.destroyed;
  }

  readBody(maxInputSize: number, tensorsAt?: number): Promise<Uint8Array> {
    return readMessage(this.#request.raw, maxInputSize, tensorsAt);
  }

  onGone(listener: () => void): () => void {
    const response = this.#response;
    response.once("close", listener);
    return () => response.off("close", listener);
  }

  report(error: unknown): void {
    this.#request.log.error(error);
  }
}

function pathOf(url: string, prefix: string): string {
  const query = url.indexOf("?");
  const path = query < 0 ? url : url.slice(0, query);
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}
