import { METHODS, type RequestListener } from "node:http";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import type { V2Handler } from "../v2/v2-handler.js";
import { fastifyHandler, leaveBodies } from "./v2-plugin.js";

/** Answers requests by way of fastify, whose logger writes each of them down. */
export async function answerAndLog(
  handler: V2Handler,
  logger: NonNullable<FastifyServerOptions["logger"]>,
): Promise<RequestListener> {
  const answer = fastifyHandler(handler);
  const app = fastify({
    logger,
    // While the server stops, the routes go on to answer by themselves.
    return503OnClosing: false,
    // A path that fastify cannot decode is one like any other to Triton.
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
