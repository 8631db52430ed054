import type { Frontend } from "@tritonjs/core";
import type { InferenceService, TlsOptions, WebPages } from "@tritonjs/core/frontend";
import type { FastifyServerOptions } from "fastify";
import type { V2Request } from "../exchange/request.js";
import { errorResponse, faultResponse, type V2Response } from "../exchange/response.js";
import { withPages } from "../pages/serve-pages.js";
import type { V2Handler } from "../v2/v2-handler.js";
import { ListeningFrontend } from "./listening-frontend.js";

/** Options of {@link metrics}. */
export interface MetricsOptions {
  /** Port to listen on; 8002 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Encrypts connections; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Pages to serve beside the metrics, such as `dashboard()`; none unless given. */
  readonly pages?: WebPages;
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

/**
 * Prometheus metrics at `/metrics` on a port of their own.
 *
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), metrics({ port: 8002 })] });
 * ```
 */
export function metrics(options: MetricsOptions = {}): Frontend {
  const { port = 8002, address = "localhost", tls, logger, pages } = options;
  const portHint = "the option metricsPort (or metrics({ port }))";
  return new ListeningFrontend(
    { name: "metrics", port, address, portHint, tls, logger },
    (service) => {
      const handler: V2Handler = (request) => answer(service, request);
      return pages === undefined ? handler : withPages(handler, service, pages);
    },
    (address) => {
      if (pages !== undefined) pages.servedAt = address;
    },
  );
}

/** Answers a request. As in Triton, paths other than `/metrics` get an empty page. */
async function answer(service: InferenceService, request: V2Request): Promise<V2Response> {
  if (request.method !== "GET") return faultResponse(405, "Method Not Allowed", "text/plain");
  try {
    const page = /^\/metrics\/?$/.test(request.path) ? await service.metrics() : "";
    const headers = { "content-type": "text/plain; charset=utf-8" };
    return { status: 200, headers, body: Buffer.from(page, "utf8") };
  } catch (thrown) {
    return errorResponse(request, thrown, "text/plain");
  }
}
