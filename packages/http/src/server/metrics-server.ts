import type { Frontend } from "@tritonjs/core";
import {
  checkOptionNames,
  type InferenceService,
  keyList,
  type TlsOptions,
  type WebPages,
} from "@tritonjs/core/frontend";
import type { V2Request } from "../exchange/request.js";
import { errorResponse, faultResponse, type V2Response } from "../exchange/response.js";
import type { FastifyServerOptions } from "../fastify/fastify.js";
import { withPages } from "../pages/serve-pages.js";
import { metricsResponse } from "../routes/metrics.js";
import { authenticate } from "../v2/authenticate.js";
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

const METRICS_OPTION_KEYS = keyList<MetricsOptions>({
  port: true,
  address: true,
  tls: true,
  logger: true,
  pages: true,
});

/**
 * Prometheus metrics at `/metrics` on a port of their own.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), metrics({ port: 8002 })] });
 * ```
 */
export function metrics(options: MetricsOptions = {}): Frontend {
  checkOptionNames("metrics()", options, METRICS_OPTION_KEYS);
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
  const { authentication } = service;
  const refusal = authentication && (await authenticate(authentication, request, "metrics", "text/plain"));
  if (refusal !== undefined) return refusal;
  if (request.method !== "GET") return faultResponse(405, "Method Not Allowed", "text/plain");
  try {
    if (/^\/metrics\/?$/.test(request.path)) return await metricsResponse(service, request);
    return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: Buffer.alloc(0) };
  } catch (thrown) {
    return errorResponse(request, thrown, "text/plain");
  }
}
