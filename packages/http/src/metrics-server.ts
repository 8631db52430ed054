import type { Frontend, InferenceService } from "@tritonjs/core";
import type { FastifyReply, FastifyRequest, FastifyServerOptions } from "fastify";
import { ListeningFrontend } from "./listening-frontend.js";
import { sendError, sendFault } from "./routes/reply.js";
import { leaveBodies } from "./v2-plugin.js";

/** Options of {@link metrics}. */
export interface MetricsOptions {
  /** 8002 unless given; 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

/**
 * Prometheus metrics at `/metrics` on a port of their own.
 *
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), metrics({ port: 8002 })] });
 * ```
 */
export function metrics(options: MetricsOptions = {}): Frontend {
  const { port = 8002, address = "localhost", logger } = options;
  const portHint = "the option metricsPort (or metrics({ port }))";
  return new ListeningFrontend({ name: "metrics", port, address, portHint, logger }, (app, service) => {
    leaveBodies(app);
    app.setNotFoundHandler((request, reply) => answer(service, request, reply));
  });
}

/** Any other path than `/metrics` is answered with an empty page, as Triton does. */
async function answer(
  service: InferenceService,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if (request.method !== "GET") {
    sendFault(reply, 405, "Method Not Allowed", "text/plain");
    return reply;
  }
  try {
    const page = /^\/metrics\/?(?:\?|$)/.test(request.raw.url ?? "") ? await service.metrics() : "";
    reply.code(200).header("content-type", "text/plain; charset=utf-8").send(Buffer.from(page, "utf8"));
  } catch (thrown) {
    sendError(reply, thrown, "text/plain");
  }
  return reply;
}
