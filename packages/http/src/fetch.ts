/* The part of the package that needs no HTTP server of its own. */
export type { LabelLookup } from "./encode/infer-response.js";
export { type OpenApiDocument, openApiDocument } from "./routes/open-api/document.js";
export type { CorsOptions } from "./v2/cors.js";
export { type FetchHandler, type FetchHandlerOptions, fetchHandler } from "./web/fetch-handler.js";
export { type NodeListener, toNodeListener } from "./web/node-listener.js";
