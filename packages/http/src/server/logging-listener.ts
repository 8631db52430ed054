import { METHODS, type RequestListener } from "node:http";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { V2Handler } from "../routes/v2-handler.js";
import type { FastifyInstance, FastifyServerOptions } from "./fastify.js";
import { fastifyHandler, leaveBodies } from "./v2-plugin.js";

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
