import { promisify } from "node:util";
import { constants, gzip as gzipCallback } from "node:zlib";
import type { MetricsText } from "@tritonjs/core/types";
import type { InferenceService } from "@tritonjs/server";
import { firstHeader, type V2Request } from "../exchange/request.js";
import { byteLength, type V2Response } from "../exchange/response.js";
import { getRoute, type Route } from "./route.js";

/** The metrics page, as the frontend on a port of its own serves it. */
export const metricsRoute: Route = getRoute(
  /^\/metrics\/?$/,
  "metrics",
  ({ service, request }) => metricsResponse(service, request),
  "text/plain",
);

/**
 * Prepares the page, so that its first request does not hold the event loop. A failure is the answer of that request,
 * because models can be used without metrics.
 */
export async function prepareMetrics(service: InferenceService): Promise<void> {
  await service.prepareMetrics?.().catch(() => {});
}

/** Bytes of a page from which compressing it is worth the time. */
const WORTH_COMPRESSING_BYTES = 1024;

/**
 * Answers with the metrics page: in the OpenMetrics format for a client that wants it, compressed for a client that
 * accepts gzip.
 */
export async function metricsResponse(service: InferenceService, request: V2Request): Promise<V2Response> {
  const page = await service.metricsFor(firstHeader(request, "accept"));
  const headers = { "content-type": page.type, vary: "accept, accept-encoding" };
  const isCompressed =
    acceptsGzip(firstHeader(request, "accept-encoding")) && byteLength(page.body) >= WORTH_COMPRESSING_BYTES;
  if (!isCompressed) return { status: 200, headers, body: page.body };
  return { status: 200, headers: { ...headers, "content-encoding": "gzip" }, body: await compressed(page) };
}

/** True for a header `Accept-Encoding` that names gzip, or anything, and does not refuse it with the weight 0. */
function acceptsGzip(header: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const item of header?.toLowerCase().split(",") ?? []) {
    const [name = "", weight] = item.split(";q=");
    weights.set(name.trim(), weight === undefined ? 1 : Number.parseFloat(weight));
  }
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}

const gzip = promisify(gzipCallback);

/** A page of thousands of models is the same for all clients of one second, and so is its compressed form. */
const compressedPages = new WeakMap<MetricsText, Promise<Uint8Array>>();

/** Compresses a page on a thread of Node's pool. The fastest level makes a tenth of it. */
function compressed(page: MetricsText): Promise<Uint8Array> {
  let bytes = compressedPages.get(page);
  if (bytes === undefined) {
    bytes = gzip(Buffer.concat(page.body), { level: constants.Z_BEST_SPEED });
    compressedPages.set(page, bytes);
  }
  return bytes;
}
