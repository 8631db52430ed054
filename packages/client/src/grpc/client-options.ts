import type { ChannelOptions } from "@grpc/grpc-js";
import type {
  CommonCallOptions,
  CommonClientOptions,
  Compression,
  VersionOption,
} from "../options/client-options.js";

/** Certificates in PEM. */
type Pem = string | Buffer;

/** Certificates of an encrypted connection. */
export interface ClientTlsOptions {
  /** Certificate authorities that are trusted to sign the server's certificate. @default those of Node.js */
  readonly ca?: Pem;
  /** The client's own certificate, for servers that require one (mutual TLS). */
  readonly cert?: Pem;
  /** The private key of `cert`. */
  readonly key?: Pem;
}

/** Options of a client, for all calls that do not override them. Headers are sent as metadata. */
export interface ClientOptions extends CommonClientOptions {
  /** The access token of the server, sent as `triton-grpc-protocol-triton-access-token`. */
  readonly accessToken?: string;
  /** Encrypts the connection. @default false, unless the url begins with `grpcs://` */
  readonly tls?: boolean | ClientTlsOptions;
  /** Options of grpc-js' channel: keepalive, windows, sizes. They override the client's own choices. */
  readonly channelOptions?: ChannelOptions;
  /** Compresses inference requests. @default no compression */
  readonly requestCompression?: Compression;
}

/** Options of every call. */
export type CallOptions = CommonCallOptions;

/** Options of calls about one model. */
export interface ModelCallOptions extends CallOptions, VersionOption {}

/** PyTriton's metadata for the access token. */
export const ACCESS_TOKEN_HEADER = "triton-grpc-protocol-triton-access-token";
