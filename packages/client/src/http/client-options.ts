import type {
  CommonCallOptions,
  CommonClientOptions,
  Compression,
  VersionOption,
} from "../options/client-options.js";

/** What the client needs of `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Options of a client: they hold for all its calls, unless a call says otherwise. */
export interface ClientOptions extends CommonClientOptions {
  /** The access token of the server, sent as the header `triton-access-token`. */
  readonly accessToken?: string;
  /**
   * What sends the requests; the global `fetch` unless given. Connections are its business: it keeps them open and
   * uses them again.
   */
  readonly fetch?: Fetch;
  /** Compresses the bodies of infer requests. @default no compression */
  readonly requestCompression?: Compression;
  /** Asks for compressed answers to infer requests. @default no compression */
  readonly responseCompression?: Compression;
  /** Tensors of infer requests travel as bytes; `false` for JSON. @default true */
  readonly binary?: boolean;
}

/** Options of every call. The server is told of one that is given up by the closed connection. */
export interface CallOptions extends CommonCallOptions {
  /** Added to the address of this request. */
  readonly query?: Readonly<Record<string, string>>;
}

/** Options of calls about one model. */
export interface ModelCallOptions extends CallOptions, VersionOption {}

/** PyTriton's header for the access token. */
export const ACCESS_TOKEN_HEADER = "triton-access-token";
