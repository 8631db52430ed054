/*
 * `@tritonjs/http/frontend`: what a frontend of another protocol over HTTP needs: a request and its answer on any server,
 * and the places where a handler can run: a port of its own, fastify, and the web platform.
 */

export { loopTurns } from "./exchange/loop-turns.js";
export { ClientGone, ConnectionFault, firstHeader, headersOf, type V2Request } from "./exchange/request.js";
export {
  BodyStream,
  type BodyStreamListener,
  emptyResponse,
  errorResponse,
  faultResponse,
  jsonResponse,
  type V2Response,
} from "./exchange/response.js";
export { DEFAULT_MAX_INPUT_SIZE, InputTooLarge, MAX_JSON_OBJECTS, MAX_JSON_VALUES } from "./limits.js";
export { metricsResponse } from "./routes/metrics.js";
export { HttpTrace, type TracedExchange, traceReceived } from "./routes/route.js";
export { type V2Handler, type V2Options, v2Handler, withAllowedHosts } from "./routes/v2-handler.js";
export type { CorsOptions } from "./server/cors.js";
export { listedOrigins, withCors } from "./server/cors.js";
export type { FastifyInstance, FastifyPluginCallback } from "./server/fastify.js";
export { type FetchHandler, webHandler } from "./server/fetch-handler.js";
export {
  HTTP_LIMIT_TYPES,
  type HttpLimits,
  ListeningFrontend,
  type ListenOptions,
} from "./server/listening-frontend.js";
export type { ClientErrorBody } from "./server/node-connections.js";
export { listensOnLoopback, mountHandler } from "./server/v2-plugin.js";
