import type { ServerOptions } from "node:http";

/** Limits on a single client of a server. */
export interface HttpLimits {
  /** Bytes of the request line and headers. A longer head gets 431. */
  readonly maxHeaderSize: number;
  /** Milliseconds to send the head, from the first byte or the opening of the connection. Then the answer is 408. */
  readonly headersTimeoutMs: number;
  /** Milliseconds to send a request in full. Then the answer is 408. */
  readonly requestTimeoutMs: number;
  /** Milliseconds that a connection stays open without a request. */
  readonly keepAliveTimeoutMs: number;
}

/** The defaults, with their reasons. */
const DEFAULTS: HttpLimits = {
  /** Node's default. */
  maxHeaderSize: 16_384,
  /** Node's default. */
  headersTimeoutMs: 60_000,
  /** Enough for 64 MiB at 2 Mbit/s. */
  requestTimeoutMs: 300_000,
  /** Longer than the minute after which load balancers close an idle connection: they should close it first. */
  keepAliveTimeoutMs: 72_000,
};

/** The names of the limits. */
export const HTTP_LIMIT_KEYS = Object.keys(DEFAULTS);

/** Longest interval between checks for slow clients, in milliseconds. */
const MAX_CHECK_INTERVAL_MS = 30_000;

/** Converts the limits to options of a Node server. */
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
