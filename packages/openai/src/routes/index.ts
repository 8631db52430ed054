import { metricsResponse } from "@tritonjs/http/frontend";
import { chatRoute } from "./chat.js";
import { completionsRoute } from "./completions.js";
import { embeddingsRoute } from "./embeddings.js";
import { modelRoutes } from "./models.js";
import { responsesRoute } from "./responses.js";
import type { Route } from "./route.js";

/** All endpoints, in the order in which they are tried. */
export const routes: readonly Route[] = [
  chatRoute,
  completionsRoute,
  responsesRoute,
  embeddingsRoute,
  ...modelRoutes,
  {
    path: /^\/health\/ready$/,
    method: "GET",
    group: "health",
    access: "health",
    async handle({ service }) {
      const status = (await service.checkReady()) ? 200 : 400;
      return { status, headers: { "content-type": "text/plain" }, body: Buffer.alloc(0) };
    },
  },
  {
    path: /^\/metrics$/,
    method: "GET",
    group: "metrics",
    access: "metrics",
    handle: ({ service, request }) => metricsResponse(service, request),
  },
];

/** Prefixes of all paths, as patterns of fastify. */
export const ROUTE_PATTERNS = ["/v1/*", "/health/ready", "/metrics"];
