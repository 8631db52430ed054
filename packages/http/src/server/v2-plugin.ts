import { METHODS, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { OptionTypes } from "@tritonjs/protocol";
import { assertOptions, errorFor, TritonError } from "@tritonjs/protocol";
import { type InferenceService, type Served, serviceOf } from "@tritonjs/server";
import { isLoopback } from "@tritonjs/server/internal";
import { byteLength, isWhole, joined, type V2Response } from "../exchange/response.js";
import {
  V2_OPTION_TYPES,
  type V2Handler,
  type V2Options,
  v2Handler,
  withAllowedHosts,
} from "../routes/v2-handler.js";
import type {
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  FastifyServerOptions,
} from "./fastify.js";
import { NodeV2Request } from "./node-connections.js";

/** The target of requests: a `Triton`, or its service. */
export type V2Target =
  | { readonly triton: Served; readonly service?: undefined }
  | { readonly service: InferenceService; readonly triton?: undefined };

/** Options of {@link v2Plugin}. */
export type V2PluginOptions = V2Options & V2Target;

/** A route handler of fastify. */
export type FastifyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

const PLUGIN_OPTION_TYPES: OptionTypes = {
  triton: "object",
  service: "object",
  ...V2_OPTION_TYPES,
  // Options of fastify's `register`.
  prefix: "string",
  logLevel: "any",
  logSerializers: "any",
};

/**
 * The v2 routes as a fastify plugin, for an existing application and any prefix. The plugin shares the application's
 * port, hooks and logger, and reads request bodies itself.
 *
 * @example
 * ```ts
 * app.register(v2Plugin, { triton, prefix: "/inference" });
 * ```
 */
export const v2Plugin: FastifyPluginCallback<V2PluginOptions> = (app, options, done) => {
  assertOptions("v2Plugin", options, PLUGIN_OPTION_TYPES);
  const service = options.service ?? serviceOf(options.triton);
  const loopback = listensOnLoopback(app);
  const handler = v2Handler(service, { maxInputSizeName: "v2Plugin's option maxInputSize", ...options });
  const urls = ["/v2", "/v2/*", ...(options.metrics ? ["/metrics"] : [])];
  mountHandler(app, withAllowedHosts(handler, service.allowedHosts, loopback), urls);
  done();
};

/** A function that says whether an application listens only on loopback addresses. False until it listens. */
export function listensOnLoopback(app: FastifyInstance): () => boolean {
  let loopback = false;
  app.addHook("onListen", (done) => {
    const addresses: readonly (AddressInfo | string)[] = app.addresses();
    loopback = addresses.every((one) => typeof one !== "string" && isLoopback(one.address));
    done();
  });
  return () => loopback;
}

/**
 * Adds a handler to an application, which from then on reads no request bodies.
 *
 * @param urls patterns of the handler's paths, below the prefix of the application
 */
export function mountHandler(app: FastifyInstance, handler: V2Handler, urls: readonly string[]): void {
  leaveBodies(app);
  const answer = fastifyHandler(handler, app.prefix);
  for (const url of urls) {
    app.route({ method: app.supportedMethods, url, exposeHeadRoute: false, handler: answer });
  }
}

/** Stops fastify from reading request bodies, and from checking their content type, which may be malformed. */
export function leaveBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, parsed) => parsed(null));
  app.addHook("onRequest", (request, _reply, next) => {
    delete request.headers["content-type"];
    next();
  });
}

/** Answers every request that fastify received. The handler matches paths itself, below `prefix`. */
export function fastifyHandler(handler: V2Handler, prefix = ""): FastifyHandler {
  return async (request, reply) => {
    const response = await handler(new FastifyV2Request(request, reply, prefix));
    if (response === undefined) return reply.hijack();
    sendResponse(request, reply, response);
    return reply;
  };
}

/** A request that fastify received. Its body has not been read yet. */
class FastifyV2Request extends NodeV2Request {
  constructor(
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    prefix: string,
  ) {
    super(request.raw, reply.raw, prefix);
  }

  /** Plugins such as @fastify/cors set headers of the reply. */
  override get grantedOrigin(): string | undefined {
    return this.reply.getHeader("access-control-allow-origin")?.toString();
  }

  override get scheme(): "http" | "https" {
    return this.request.protocol;
  }

  /** fastify knows the proxies that the application trusts. */
  override get remoteAddress(): string | undefined {
    return this.request.ip;
  }

  override report(error: unknown): void {
    this.request.log.error(error);
  }
}

/** Sends an answer through fastify, so that the hooks of the application see it. */
function sendResponse(request: FastifyRequest, reply: FastifyReply, response: V2Response): void {
  const { status, headers } = response;
  const body = isWhole(response.body) ? (joined(response.body) ?? response.body) : response.body;
  reply.code(status).headers(headers as Record<string, string>);
  if (body instanceof Uint8Array) reply.send(body);
  else if (isWhole(body)) {
    reply.header("content-length", byteLength(body)).send(Readable.from(body, { objectMode: false }));
  } else {
    // HTTP/1.0 has no chunks: the end of the connection ends the body. HTTP/2 has frames.
    if (request.raw.httpVersion === "1.1") reply.header("transfer-encoding", "chunked");
    reply.send(Readable.from(body, { objectMode: false }));
  }
}

/**
 * Answers requests through fastify, whose logger logs each of them.
 *
 * @throws TritonError UNAVAILABLE if fastify is not installed
 */
export async function answerAndLog(
  handler: V2Handler,
  logger: NonNullable<FastifyServerOptions["logger"]>,
): Promise<RequestListener> {
  const answer = fastifyHandler(handler);
  const { fastify } = await importFastify();
  const app = fastify({
    logger,
    // While the server stops, the routes themselves keep answering.
    return503OnClosing: false,
    // Triton treats a path that fastify cannot decode like any other.
    frameworkErrors: (_error, request, reply) => void answer(request, reply),
  } as FastifyServerOptions) as FastifyInstance;
  supportAllMethods(app);
  leaveBodies(app);
  app.setNotFoundHandler(answer);
  await app.ready();
  return (incoming, outgoing) => app.routing(incoming, outgoing);
}

/** Imports the application's fastify. Bundlers leave the import as it is, so they do not fail where it is missing. */
async function importFastify(name = "fastify"): Promise<typeof import("fastify")> {
  try {
    return await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name);
  } catch (cause) {
    const why = TritonError.from(cause).message.split("\n")[0];
    const text = `cannot load fastify, which the option 'logger' of http() and metrics() needs (${why}): npm install fastify`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
  }
}

/** Lets every method that Node can parse reach the routes, which answer 405. */
function supportAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (method !== "CONNECT" && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
}
