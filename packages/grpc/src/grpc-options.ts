import type { TlsOptions } from "@tritonjs/core/frontend";
import type { HandlerOptions } from "./handlers/methods.js";
import { CONNECTION_DEFAULTS, type ConnectionOptions } from "./transport/http2/connection-options.js";
import type { CompressionLevel } from "./transport/http2/transport-options.js";

/** Options of the gRPC frontend. */
export interface GrpcOptions extends HandlerOptions, ConnectionOptions {
  /** Host name or address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Lets other processes listen on the port too, from Node 22.12 on; false unless given. */
  readonly reusePort?: boolean;
  /** Port to listen on; 8001 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Encrypts connections; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Largest request in bytes, also after decompression. */
  readonly maxReceiveMessageSize?: number;
  /** Compresses responses to inferences, for clients that accept gzip or deflate. */
  readonly inferResponseCompressionLevel?: CompressionLevel;
  /** Milliseconds that `stop()` waits for calls in flight before it ends them. */
  readonly stopGraceMs?: number;
}

/** The default of each option. */
export const GRPC_DEFAULTS = {
  ...CONNECTION_DEFAULTS,
  /** Only programs on this machine can connect by default. */
  address: "localhost",
  reusePort: false,
  /** tritonserver's default. */
  port: 8001,
  /** The size of the largest HTTP body: a tensor of 64 MiB, and 64 KiB for its description. */
  maxReceiveMessageSize: 64 * 1024 * 1024 + 64 * 1024,
  /** tritonserver's default: tensors seldom become much smaller. */
  inferResponseCompressionLevel: "none" as CompressionLevel,
  /** tritonserver's `--exit-timeout-secs`. */
  stopGraceMs: 30_000,
};

/** Options with all defaults filled in. */
export type ResolvedGrpcOptions = GrpcOptions & typeof GRPC_DEFAULTS;

/** Fills in the defaults. */
export function resolveGrpcOptions(options: GrpcOptions): ResolvedGrpcOptions {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...GRPC_DEFAULTS, ...Object.fromEntries(given) };
}
