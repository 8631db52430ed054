import type { InferenceService } from "@tritonjs/core";
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { ClientGone, ConnectionFault } from "./decode/read-body.js";
import type { LabelLookup } from "./encode/classification.js";
import { DEFAULT_MAX_INPUT_SIZE } from "./limits.js";
import { matchRoute } from "./routes/index.js";
import { sendError, sendFault } from "./routes/reply.js";
import type { RouteContext } from "./routes/route.js";

/** What {@link v2Plugin} takes. */
export interface V2PluginOptions {
  readonly service: InferenceService;
  /** Largest tensor or JSON document of a request in bytes; 64 MiB unless given. */
  readonly maxInputSize?: number;
  /** Names of the classes of an output, for the classification extension. */
  readonly labels?: LabelLookup;
}

/** Answers one request, whatever its path. */
export type V2Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/**
 * The v2 routes as a fastify plugin, to be mounted in an existing application under any prefix. It shares the
 * application's port, hooks and logger, and reads request bodies itself.
 *
 * @example
 * ```ts
 * app.register(v2Plugin, { service: triton.service, prefix: "/inference" });
 * ```
 */
export const v2Plugin: FastifyPluginCallback<V2PluginOptions> = (app, options, done) => {
  const handler = v2Handler(options, app.prefix);
  let closing = false;
  leaveBodies(app);
  app.addHook("onSend", (_request, reply, _payload, next) => {
    if (closing) reply.header("connection", "close");
    next();
  });
  app.addHook("preClose", (next) => {
    closing = true;
    next();
  });
  for (const url of ["/v2", "/v2/*"]) {
    app.route({ method: app.supportedMethods, url, exposeHeadRoute: false, handler });
  }
  done();
};

/** Keeps fastify from reading request bodies, and from looking at their content type, which may be malformed. */
export function leaveBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, parsed) => parsed(null));
  app.addHook("onRequest", (request, _reply, next) => {
    delete request.headers["content-type"];
    next();
  });
}

/** The handler behind {@link v2Plugin}: it matches paths by itself, below `prefix`. */
export function v2Handler(options: V2PluginOptions, prefix = ""): V2Handler {
  const context: RouteContext = {
    service: options.service,
    maxInputSize: options.maxInputSize ?? DEFAULT_MAX_INPUT_SIZE,
    labels: options.labels,
  };
  return async (request, reply) => {
    const match = matchRoute(pathOf(request, prefix));
    if (match === undefined) {
      sendFault(reply, 404, "Not Found", "text/plain");
      return reply;
    }
    const { route, model, version } = match;
    const exchange = { ...context, request, reply, model, version, errorType: route.errorType };
    if (!route.methods.some((method) => method === request.method)) {
      sendFault(reply, 405, "Method Not Allowed", route.errorType);
      return reply;
    }
    try {
      await route.handle(exchange);
    } catch (thrown) {
      if (thrown instanceof ClientGone) return reply.hijack();
      const fatal = thrown instanceof ConnectionFault;
      if (fatal) reply.header("connection", "close");
      sendError(reply, thrown, fatal ? "application/json" : exchange.errorType);
    }
    return reply;
  };
}

function pathOf(request: FastifyRequest, prefix: string): string {
  const url = request.raw.url ?? "";
  const query = url.indexOf("?");
  const path = query < 0 ? url : url.slice(0, query);
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}
