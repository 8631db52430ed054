import type { FastifyReply, FastifyRequest } from "fastify";
import { NodeV2Request } from "../node/node-request.js";

/** A request that fastify received. Its body is still unread. */
export class FastifyV2Request extends NodeV2Request {
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest, reply: FastifyReply, prefix: string) {
    super(request.raw, reply.raw, prefix);
    this.#request = request;
  }

  override report(error: unknown): void {
    this.#request.log.error(error);
  }
}
