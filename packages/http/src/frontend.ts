/*
 * `@tritonjs/http/frontend`: what a frontend of another protocol over HTTP needs: a request and its answer on any server,
 * and the places where a handler can run: a port of its own, fastify, and the web platform.
 */

export { ClientGone, ConnectionFault } from "./exchange/body-buffer.js";
export { BodyStream, type BodyStreamListener } from "./exchange/body-stream.js";
export { InputTooLarge } from "./exchange/input-too-large.js";
export { inTurn } from "./exchange/loop-turns.js";
export { firstHeader, headersOf, type V2Request } from "./exchange/request.js";
export {
  emptyResponse,
  errorResponse,
  faultResponse,
  jsonResponse,
  type V2Response,
} from "./exchange/response.js";
export type { FastifyInstance, FastifyPluginCallback } from "./fastify/fastify.js";
export { listensOnLoopback, mountHandler } from "./fastify/v2-plugin.js";
export { checkPartCount } from "./json/count-parts.js";
export { DEFAULT_MAX_INPUT_SIZE } from "./limits.js";
export { HttpTrace, type TracedExchange, traceReceived } from "./routes/http-trace.js";
export { metricsResponse } from "./routes/metrics.js";
export type { ClientErrorBody } from "./server/client-error.js";
export { HTTP_LIMIT_KEYS, type HttpLimits } from "./server/http-limits.js";
export { ListeningFrontend, type ListenOptions } from "./server/listening-frontend.js";
export { withAllowedHosts } from "./v2/allowed-hosts.js";
export type { CorsOptions } from "./v2/cors.js";
export { listedOrigins, withCors } from "./v2/cors.js";
export { type V2Handler, type V2Options, v2Handler } from "./v2/v2-handler.js";
export { type FetchHandler, webHandler } from "./web/fetch-handler.js";
