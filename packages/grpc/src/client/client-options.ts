import type { ChannelOptions } from "@grpc/grpc-js";

/** How messages may be compressed. */
export type Compression = "gzip" | "deflate";

/** Certificates in PEM. */
type Pem = string | Buffer;

/** What an encrypted connection is made with. */
export interface ClientTlsOptions {
  /** Roots that the server's certificate may come from. @default those of Node.js */
  readonly ca?: Pem;
  /** The client's own certificate, for servers that want one: mutual TLS. */
  readonly cert?: Pem;
  /** The private key of `cert`. */
  readonly key?: Pem;
}

/** Options of a client: they hold for all its calls, unless a call says otherwise. */
export interface ClientOptions {
  /** Sent with every call, as metadata. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The access token of the server, sent as `triton-grpc-protocol-triton-access-token`. */
  readonly accessToken?: string;
  /** Encrypts the connection. @default false, unless the url begins with `grpcs://` */
  readonly tls?: boolean | ClientTlsOptions;
  /** Options of grpc-js' channel: keepalive, windows, sizes. They win over what the client would choose. */
  readonly channelOptions?: ChannelOptions;
  /** Longest time for a call, all its attempts together; `Infinity` for no limit. Streams have none. @default 60000 */
  readonly timeoutMs?: number;
  /**
   * Attempts after the first. A call that never left this machine is always made again; one that was lost on its
   * way only when it changes nothing at the server, so never an inference. @default 2
   */
  readonly retries?: number;
  /** Pause before the first retry; each further one is twice as long. @default 100 */
  readonly retryDelayMs?: number;
  /** Also retry calls that the server ends with UNAVAILABLE. @default false */
  readonly retryUnavailable?: boolean;
  /** Compresses the requests of inferences. @default no compression */
  readonly requestCompression?: Compression;
}

/** Options of every call. */
export interface CallOptions {
  /** Sent with this call, instead of those of the client with the same name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Gives the call up when aborted: it rejects with CANCELLED, and the server is told. */
  readonly signal?: AbortSignal;
  /** Longest time for this call, all its attempts together; `Infinity` for no limit. @default that of the client */
  readonly timeoutMs?: number;
}

/** Options of calls about one model. */
export interface ModelCallOptions extends CallOptions {
  /** @default the version that the server picks */
  readonly modelVersion?: string | number;
}

/** The default of the HTTP client too. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Enough for a server that restarts or a connection that was just closed, too few to add to an overload. */
export const DEFAULT_RETRIES = 2;

/** Long enough for a listening socket to come back, short enough not to be felt. */
export const DEFAULT_RETRY_DELAY_MS = 100;

/** PyTriton's metadata for the access token. */
export const ACCESS_TOKEN_HEADER = "triton-grpc-protocol-triton-access-token";
