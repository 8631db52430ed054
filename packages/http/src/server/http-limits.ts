import type { ServerOptions } from "node:http";

/** What one client may take of a server. */
export interface HttpLimits {
  /** Bytes of the request line and headers. More are answered with 431. */
  readonly maxHeaderSize: number;
  /** Time to send them, from the first byte or the opening of the connection. Then the answer is 408. */
  readonly headersTimeoutMs: number;
  /** Time to send a request in full. Then the answer is 408. */
  readonly requestTimeoutMs: number;
  /** Time that a connection stays open without a request. */
  readonly keepAliveTimeoutMs: number;
}

/** The defaults, with their reasons. */
const DEFAULTS: HttpLimits = {
  /** Node's. */
  maxHeaderSize: 16_384,
  /** Node's. */
  headersTimeoutMs: 60_000,
  /** Enough for 64 MiB at 2 Mbit/s. */
  requestTimeoutMs: 300_000,
  /** Longer than the minute after which load balancers give up an idle connection: they should be the first. */
  keepAliveTimeoutMs: 72_000,
};

/** How often slow clients are looked for. */
const MAX_CHECK_INTERVAL_MS = 30_000;

/** The limits as options of a server of Node. */
export function limitOptions(limits: Partial<HttpLimits> = {}): ServerOptions {
  const { maxHeaderSize, headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = {
    ...DEFAULTS,
    ...limits,
  };
  const shortest = Math.min(headersTimeoutMs, requestTimeoutMs);
  return {
    requireHostHeader: false,
    maxHeaderSize,
    headersTimeout: shortest,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(MAX_CHECK_INTERVAL_MS, Math.ceil(shortest / 2)),
  };
}
