import { METHODS, type RequestListener } from "node:http";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import type { V2Handler } from "../v2/v2-handler.js";
import { fastifyHandler, leaveBodies } from "./v2-plugin.js";

/** Answers requests through fastify, whose logger logs each of them. */
export async function answerAndLog(
  handler: V2Handler,
  logger: NonNullable<FastifyServerOptions["logger"]>,
): Promise<RequestListener> {
  const answer = fastifyHandler(handler);
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

/** Lets every method that Node can parse reach the routes, which answer 405. */
function supportAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (method !== "CONNECT" && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
}
