/* The part of the package that needs no HTTP server of its own. */
export type { LabelLookup } from "./infer/infer-response.js";
export { type OpenApiDocument, openApiDocument } from "./routes/open-api.js";
export type { CorsOptions } from "./server/cors.js";
export {
  type FetchHandler,
  type FetchHandlerOptions,
  fetchHandler,
  type NodeListener,
  toNodeListener,
} from "./server/fetch-handler.js";
