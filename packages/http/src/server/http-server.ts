import type { Frontend } from "@tritonjs/core";
import type { TlsOptions } from "@tritonjs/core/frontend";
import type { FastifyServerOptions } from "../fastify/fastify.js";
import { type CorsOptions, withCors } from "../v2/cors.js";
import { type V2Options, v2Handler } from "../v2/v2-handler.js";
import type { HttpLimits } from "./http-limits.js";
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
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

/**
 * The v2 protocol on a port of its own.
 *
 * @example
 * ```ts
 * await triton.serve({ frontends: [http({ port: 8000 })] });
 * ```
 */
export function http(options: HttpOptions = {}): Frontend {
  const { port = 8000, address = "localhost", reusePort = false, logger, tls, limits, cors, ...v2 } = options;
  const portHint = "the option httpPort (or http({ port }))";
  return new ListeningFrontend(
    { name: "http", port, address, reusePort, portHint, tls, limits, logger },
    (service) => withCors(v2Handler(service, v2), cors),
  );
}
