import { jsonResponse } from "../exchange/response.js";
import { openApiDocument } from "./open-api/document.js";
import type { Route } from "./route.js";

/** The OpenAPI document of the other routes. Triton has none, so this route is optional. */
export const openApiRoute: Route = {
  path: /^\/v2\/openapi\.json$/,
  methods: ["GET"],
  group: "metadata",
  errorType: "application/json",
  handle: () => jsonResponse(openApiDocument()),
};
