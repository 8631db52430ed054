import type { V2Response } from "../exchange/response.js";
import type { Route } from "./route.js";

/** The metrics page, as the frontend on a port of its own serves it. */
export const metricsRoute: Route = {
  path: /^\/metrics\/?$/,
  methods: ["GET"],
  group: "metrics",
  errorType: "text/plain",
  handle: async ({ service }) => metricsResponse(await service.metrics()),
};

/** Makes an answer of a page in Prometheus' text format. */
export function metricsResponse(page: string): V2Response {
  const headers = { "content-type": "text/plain; charset=utf-8" };
  return { status: 200, headers, body: Buffer.from(page, "utf8") };
}
