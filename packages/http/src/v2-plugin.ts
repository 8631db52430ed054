import type { InferenceService } from "@tritonjs/core";
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { headerPattern } from "./decode/forwarded-headers.js";
import { ClientGone, ConnectionFault } from "./decode/read-body.js";
import type { LabelLookup } from "./encode/classification.js";
import { DEFAULT_MAX_INPUT_SIZE } from "./limits.js";
import { LogSettings } from "./log-settings.js";
import { isAllowed, type Restrictions } from "./restrictions.js";
import { firstHeader } from "./routes/first-header.js";
import { matchRoute } from "./routes/index.js";
import { sendError, sendFault } from "./routes/reply.js";
import type { Exchange, RouteContext } from "./routes/route.js";

/** What {@link v2Plugin} takes. */
export interface V2PluginOptions {
  readonly service: InferenceService;
  /** Largest tensor or JSON document of a request in bytes; 64 MiB unless given. */
  readonly maxInputSize?: number;
  /** Names of the classes of an output, for classification; the model's own unless given. */
  readonly labels?: LabelLookup;
  /** Headers whose names match go to the model as parameters; none unless given. Upper and lower case are one. */
  readonly headerForwardPattern?: string | RegExp;
  /** Groups of routes that ask for a header; none unless given. */
  readonly restrictions?: Restrictions;
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
  leaveBodies(app);
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
    labels: options.labels ?? ((model, output) => model.labels.get(output)),
    forwardedHeaders: headerPattern(options.headerForwardPattern),
    logSettings: new LogSettings(),
  };
  const { restrictions = {} } = options;
  return async (request, reply) => {
    const match = matchRoute(pathOf(request, prefix));
    if (match === undefined) {
      sendFault(reply, 404, "Not Found", "text/plain");
      return reply;
    }
    const { route } = match;
    const restriction = restrictions[route.group];
    if (restriction !== undefined && !isAllowed(restriction, firstHeader(request, restriction.header))) {
      const fault = `This API is restricted, expecting header '${restriction.header}'`;
      sendFault(reply, 403, fault, "text/plain");
      return reply;
    }
    const exchange: Exchange = { ...context, ...match, request, reply, errorType: route.errorType };
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
