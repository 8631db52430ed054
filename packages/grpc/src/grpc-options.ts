import type { TlsOptions } from "@tritonjs/core/frontend";
import type { HandlerOptions } from "./handlers/methods.js";
import { CONNECTION_DEFAULTS, type ConnectionOptions } from "./transport/http2/connection-options.js";
import type { CompressionLevel } from "./transport/http2/transport-options.js";

/** Options of the gRPC frontend. */
export interface GrpcOptions extends HandlerOptions, ConnectionOptions {
  /** Host name or address to listen on. */
  readonly address?: string;
  /** Lets other processes listen on the port too, from Node 22.12 on. */
  readonly reusePort?: boolean;
  /** 0 takes any free port. */
  readonly port?: number;
  /** Encrypts the connections; without it they are plain. */
  readonly tls?: TlsOptions;
  /** Largest request in bytes, also after decompression. */
  readonly maxReceiveMessageSize?: number;
  /** Compresses the responses to inferences, for clients that accept gzip or deflate. */
  readonly inferResponseCompressionLevel?: CompressionLevel;
  /** How long `stop()` waits for the calls at hand before it cuts them off, in milliseconds. */
  readonly stopGraceMs?: number;
}

/** The default of each option. */
export const GRPC_DEFAULTS = {
  ...CONNECTION_DEFAULTS,
  /** Nobody but this machine, until told otherwise. */
  address: "localhost",
  reusePort: false,
  /** tritonserver's. */
  port: 8001,
  /** As large as the largest body of HTTP: a tensor of 64 MiB, and 64 KiB for all that describes it. */
  maxReceiveMessageSize: 64 * 1024 * 1024 + 64 * 1024,
  /** tritonserver's: tensors seldom become much smaller. */
  inferResponseCompressionLevel: "none" as CompressionLevel,
  /** tritonserver's `--exit-timeout-secs`. */
  stopGraceMs: 30_000,
};

/** Options with nothing left open. */
export type ResolvedGrpcOptions = GrpcOptions & typeof GRPC_DEFAULTS;

/** Fills in the defaults. */
export function resolveGrpcOptions(options: GrpcOptions): ResolvedGrpcOptions {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...GRPC_DEFAULTS, ...Object.fromEntries(given) };
}
