import type { DefaultFrontends } from "@tritonjs/core";
import { grpc } from "./server.js";

export type { GrpcOptions } from "./grpc-options.js";
export type { RestrictedProtocols } from "./handlers/restrict.js";
export { grpc } from "./server.js";
export type { ConnectionOptions } from "./transport/connection-options.js";
export type { TlsOptions } from "./transport/tls.js";
export type { CompressionLevel } from "./transport/transport.js";

/** The frontend that `serve()` opens without being told: one on `grpcAddress` and `grpcPort`. */
export const defaultFrontends: DefaultFrontends = (options) => {
  if (!options.allowGrpc) return [];
  const { grpcAddress, grpcPort, grpcMaxReceiveMessageSize } = options;
  return [grpc({ address: grpcAddress, port: grpcPort, maxReceiveMessageSize: grpcMaxReceiveMessageSize })];
};
