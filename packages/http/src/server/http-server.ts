import type { Frontend } from "@tritonjs/core";
import { checkOptionNames, keyList, type TlsOptions, type WebPages } from "@tritonjs/core/frontend";
import type { FastifyServerOptions } from "../fastify/fastify.js";
import { withLandingPage } from "../pages/landing-page.js";
import { withPages } from "../pages/serve-pages.js";
import { type CorsOptions, listedOrigins, withCors } from "../v2/cors.js";
import { V2_OPTION_KEYS, type V2Options, v2Handler } from "../v2/v2-handler.js";
import { HTTP_LIMIT_KEYS, type HttpLimits } from "./http-limits.js";
import { ListeningFrontend } from "./listening-frontend.js";

/** Options of {@link http}: its address, and how the routes answer. */
export interface HttpOptions extends V2Options {
  /** Port to listen on; 8000 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Lets other processes listen on the port too, from Node 22.12 on; false unless given. */
  readonly reusePort?: boolean;
  /** Encrypts connections, and asks clients for certificates if it has a `ca`; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
  /** Lets pages of other origins use the server; none unless given. */
  readonly cors?: CorsOptions;
  /** Pages to serve on this port too, such as `dashboard()`; none unless given. */
  readonly pages?: WebPages;
  /** Pages of another port to which `/` points; none unless given. */
  readonly landing?: WebPages;
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

const HTTP_OPTION_KEYS = [
  ...keyList<Omit<HttpOptions, keyof V2Options>>({
    port: true,
    address: true,
    reusePort: true,
    tls: true,
    limits: true,
    cors: true,
    pages: true,
    landing: true,
    logger: true,
  }),
  ...V2_OPTION_KEYS,
];

/**
 * The v2 protocol on a port of its own.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http({ port: 8000 })] });
 * ```
 */
export function http(options: HttpOptions = {}): Frontend {
  checkOptionNames("http()", options, HTTP_OPTION_KEYS);
  checkOptionNames("http({ limits })", options.limits ?? {}, HTTP_LIMIT_KEYS);
  const { port = 8000, address = "localhost", reusePort = false, logger, tls, limits, ...rest } = options;
  const { cors, pages, landing, ...v2 } = rest;
  const stays = pages !== undefined || v2.labels !== undefined || (logger ?? false) !== false;
  const portHint = "the option httpPort (or http({ port }))";
  return new ListeningFrontend(
    {
      name: "http",
      port,
      address,
      reusePort,
      portHint,
      tls,
      limits,
      logger,
      threaded: () => (stays ? undefined : { ...options, port, address, reusePort, ...shown(landing) }),
    },
    (service) => {
      const routes = v2Handler(
        service,
        { maxInputSizeName: "http({ maxInputSize })", ...v2 },
        listedOrigins(cors),
      );
      const handler = withCors(routes, cors);
      if (pages !== undefined) return withPages(handler, service, pages);
      return landing === undefined ? handler : withLandingPage(handler, landing);
    },
    (address) => {
      if (pages !== undefined) pages.servedAt = address;
    },
  );
}

/** The part of pages of another port that other threads need, once the pages are open. */
function shown(landing: WebPages | undefined) {
  return landing && { landing: { path: landing.path, servedAt: landing.servedAt } };
}
