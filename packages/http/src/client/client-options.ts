import type { Compression } from "./transport/compression.js";

/** What the client needs of `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Options of a client: they hold for all its calls, unless a call says otherwise. */
export interface ClientOptions {
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The access token of the server, sent as the header `triton-access-token`. */
  readonly accessToken?: string;
  /**
   * What sends the requests; the global `fetch` unless given. Connections are its business: it keeps them open and
   * uses them again.
   */
  readonly fetch?: Fetch;
  /** Longest time for a call, all its attempts together; `Infinity` for no limit. @default 60000 */
  readonly timeoutMs?: number;
  /**
   * Attempts after the first. A request that never left this machine is always sent again; one that was lost on its
   * way only when it changes nothing at the server, so never an inference. @default 2
   */
  readonly retries?: number;
  /** Pause before the first retry; each further one is twice as long. @default 100 */
  readonly retryDelayMs?: number;
  /** Also retry requests that are answered with 503. @default false */
  readonly retryUnavailable?: boolean;
  /** Compresses the bodies of infer requests. @default no compression */
  readonly requestCompression?: Compression;
  /** Asks for compressed answers to infer requests. @default no compression */
  readonly responseCompression?: Compression;
  /** Tensors of infer requests travel as bytes; `false` for JSON. @default true */
  readonly binary?: boolean;
}

/** Options of every call. */
export interface CallOptions {
  /** Sent with this request, instead of those of the client with the same name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Added to the address of this request. */
  readonly query?: Readonly<Record<string, string>>;
  /** Gives the call up when aborted: it rejects with CANCELLED, and the server is told by the closed connection. */
  readonly signal?: AbortSignal;
  /** Longest time for this call, all its attempts together; `Infinity` for no limit. @default that of the client */
  readonly timeoutMs?: number;
}

/** Options of calls about one model. */
export interface ModelCallOptions extends CallOptions {
  /** @default the version that the server picks */
  readonly modelVersion?: string | number;
}

/** tritonclient's limit for a call. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Enough for a server that restarts or a connection that was just closed, too few to add to an overload. */
export const DEFAULT_RETRIES = 2;

/** Long enough for a listening socket to come back, short enough not to be felt. */
export const DEFAULT_RETRY_DELAY_MS = 100;

/** PyTriton's header for the access token. */
export const ACCESS_TOKEN_HEADER = "triton-access-token";
