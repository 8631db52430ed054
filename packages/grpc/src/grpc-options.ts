import { checkOptionNames, keyList, type TlsOptions } from "@tritonjs/core/frontend";
import { definedMembers } from "@tritonjs/protocol";
import { HANDLER_OPTION_KEYS, type HandlerOptions } from "./handlers/methods.js";
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
  /**
   * What errors call `maxReceiveMessageSize`, for a program whose users set it elsewhere: `--max-message` in "Use
   * --max-message to increase the limit."
   */
  readonly maxReceiveMessageSizeName?: string;
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
  maxReceiveMessageSizeName: "grpc({ maxReceiveMessageSize })",
  /** tritonserver's default: tensors seldom become much smaller. */
  inferResponseCompressionLevel: "none" as CompressionLevel,
  /** tritonserver's `--exit-timeout-secs`. */
  stopGraceMs: 30_000,
};

const GRPC_OPTION_KEYS = [
  ...keyList<Omit<GrpcOptions, keyof HandlerOptions>>({
    address: true,
    reusePort: true,
    port: true,
    tls: true,
    maxReceiveMessageSize: true,
    maxReceiveMessageSizeName: true,
    inferResponseCompressionLevel: true,
    stopGraceMs: true,
    keepaliveTimeMs: true,
    keepaliveTimeoutMs: true,
    keepalivePermitWithoutCalls: true,
    http2MaxPingsWithoutData: true,
    http2MinRecvPingIntervalWithoutDataMs: true,
    http2MaxPingStrikes: true,
    maxConnectionAgeMs: true,
    maxConnectionAgeGraceMs: true,
    maxConcurrentStreams: true,
    maxSessionMemory: true,
    maxMetadataSize: true,
  }),
  ...HANDLER_OPTION_KEYS,
];

/** Options with all defaults filled in. */
export type ResolvedGrpcOptions = GrpcOptions & typeof GRPC_DEFAULTS;

/**
 * Fills in the defaults.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 */
export function resolveGrpcOptions(options: GrpcOptions): ResolvedGrpcOptions {
  checkOptionNames("grpc()", options, GRPC_OPTION_KEYS);
  return { ...GRPC_DEFAULTS, ...definedMembers(options) };
}
