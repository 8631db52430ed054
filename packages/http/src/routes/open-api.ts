import { jsonResponse } from "../exchange/response.js";
import { openApiDocument } from "./open-api/document.js";
import type { Route } from "./route.js";

/** The description of the other routes. Triton has none: it is served where that is asked for. */
export const openApiRoute: Route = {
  path: /^\/v2\/openapi\.json$/,
  methods: ["GET"],
  group: "metadata",
  errorType: "application/json",
  handle: () => jsonResponse(openApiDocument()),
};
