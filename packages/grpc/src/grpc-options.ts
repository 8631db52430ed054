import { MAX_MESSAGE_SIZE } from "./encode/infer-response-parts.js";
import type { HandlerOptions } from "./handlers/methods.js";

/** Options of the gRPC frontend. */
export interface GrpcOptions extends HandlerOptions {
  /** Host name or address to listen on. */
  readonly address?: string;
  /** 0 takes any free port. */
  readonly port?: number;
  /** Largest request in bytes, also after decompression. */
  readonly maxReceiveMessageSize?: number;
  /** What moves the messages: Node's HTTP/2 server with windows as large as tensors need, or grpc-js. */
  readonly transport?: "http2" | "grpc-js";
  /** How long `stop()` waits for the calls at hand before it cuts them off, in milliseconds. */
  readonly stopGraceMs?: number;
}

type Defaulted = "address" | "port" | "maxReceiveMessageSize" | "transport" | "stopGraceMs";

/** The default of each option. */
export const GRPC_DEFAULTS: Required<Pick<GrpcOptions, Defaulted>> = {
  /** Nobody but this machine, until told otherwise. */
  address: "localhost",
  /** tritonserver's. */
  port: 8001,
  /** What protobuf allows. */
  maxReceiveMessageSize: MAX_MESSAGE_SIZE,
  /** The faster one. */
  transport: "http2",
  /** tritonserver's `--exit-timeout-secs`. */
  stopGraceMs: 30_000,
};

/** Options with nothing left open. */
export type ResolvedGrpcOptions = GrpcOptions & typeof GRPC_DEFAULTS;

/** Fills in the defaults. */
export function resolveGrpcOptions(options: GrpcOptions): ResolvedGrpcOptions {
  return {
    ...options,
    address: options.address ?? GRPC_DEFAULTS.address,
    port: options.port ?? GRPC_DEFAULTS.port,
    maxReceiveMessageSize: options.maxReceiveMessageSize ?? GRPC_DEFAULTS.maxReceiveMessageSize,
    transport: options.transport ?? GRPC_DEFAULTS.transport,
    stopGraceMs: options.stopGraceMs ?? GRPC_DEFAULTS.stopGraceMs,
  };
}
