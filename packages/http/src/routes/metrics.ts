import type { InferenceService } from "@tritonjs/core/frontend";
import { firstHeader, type V2Request } from "../exchange/request.js";
import type { V2Response } from "../exchange/response.js";
import type { Route } from "./route.js";

/** The metrics page, as the frontend on a port of its own serves it. */
export const metricsRoute: Route = {
  path: /^\/metrics\/?$/,
  methods: ["GET"],
  group: "metrics",
  errorType: "text/plain",
  handle: ({ service, request }) => metricsResponse(service, request),
};

/** Answers with the metrics page, in the OpenMetrics format for a client that wants it. */
export async function metricsResponse(service: InferenceService, request: V2Request): Promise<V2Response> {
  const { type, text } = await service.metricsFor(firstHeader(request, "accept"));
  return { status: 200, headers: { "content-type": type }, body: Buffer.from(text, "utf8") };
}
