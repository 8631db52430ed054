import type { InferenceService } from "@tritonjs/core";
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { FastifyV2Request } from "./fastify/fastify-request.js";
import { sendResponse } from "./fastify/send-response.js";
import { type V2Handler, type V2Options, v2Handler } from "./v2-handler.js";

/** Where requests go: a `Triton`, or the service of one. */
export type V2Target =
  | { readonly triton: { readonly service: InferenceService }; readonly service?: undefined }
  | { readonly service: InferenceService; readonly triton?: undefined };

/** What {@link v2Plugin} takes. */
export type V2PluginOptions = V2Options & V2Target;

/** A route handler of fastify. */
export type FastifyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/**
 * The v2 routes as a fastify plugin, to be mounted in an existing application under any prefix. It shares the
 * application's port, hooks and logger, and reads request bodies itself.
 *
 * @example
 * ```ts
 * app.register(v2Plugin, { triton, prefix: "/inference" });
 * ```
 */
export const v2Plugin: FastifyPluginCallback<V2PluginOptions> = (app, options, done) => {
  const service = options.service ?? options.triton.service;
  mountV2(app, fastifyHandler(v2Handler(service, options), app.prefix));
  done();
};

/** Puts the routes on an application, which from then on reads no request bodies. */
function mountV2(app: FastifyInstance, handler: FastifyHandler): void {
  leaveBodies(app);
  for (const url of ["/v2", "/v2/*"]) {
    app.route({ method: app.supportedMethods, url, exposeHeadRoute: false, handler });
  }
}

/** Keeps fastify from reading request bodies, and from looking at their content type, which may be malformed. */
export function leaveBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, parsed) => parsed(null));
  app.addHook("onRequest", (request, _reply, next) => {
    delete request.headers["content-type"];
    next();
  });
}

/** Answers whatever fastify received: the handler matches paths by itself, below `prefix`. */
export function fastifyHandler(handler: V2Handler, prefix = ""): FastifyHandler {
  return async (request, reply) => {
    const response = await handler(new FastifyV2Request(request, reply, prefix));
    if (response === undefined) return reply.hijack();
    sendResponse(request, reply, response);
    return reply;
  };
}
