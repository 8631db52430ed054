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
  /**
   * Milliseconds in which a client that is sent an answer must read some of it; 0 for no limit. Then its connection is
   * ended. The check is periodic, so it may take half as long again.
   */
  readonly sendTimeoutMs: number;
}

/** The defaults, with their reasons. */
export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  /** Node's default. */
  maxHeaderSize: 16_384,
  /** Node's default. */
  headersTimeoutMs: 60_000,
  /** Enough for 64 MiB at 2 Mbit/s. */
  requestTimeoutMs: 300_000,
  /** Longer than the minute after which load balancers close an idle connection: they should close it first. */
  keepAliveTimeoutMs: 72_000,
  /** nginx's `send_timeout`. */
  sendTimeoutMs: 60_000,
};

/** The names of the limits. */
export const HTTP_LIMIT_KEYS = Object.keys(DEFAULT_HTTP_LIMITS);

/** Longest interval between checks for slow clients, in milliseconds. */
const MAX_CHECK_INTERVAL_MS = 30_000;

/** Converts the limits to options of a Node server. */
export function limitOptions(limits: Partial<HttpLimits> = {}): ServerOptions {
  const { maxHeaderSize, headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = {
    ...DEFAULT_HTTP_LIMITS,
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
