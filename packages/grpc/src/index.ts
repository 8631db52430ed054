import type { DefaultFrontends } from "@tritonjs/core/internal";
import { grpc } from "./grpc-frontend.js";

export type { TlsOptions } from "@tritonjs/core/frontend";
export { addV2Service, type V2ServiceOptions } from "./add-v2-service.js";
export type { GrpcOptions } from "./grpc-frontend.js";
export { grpc } from "./grpc-frontend.js";
export type { RestrictedProtocols } from "./methods/protocol-methods.js";
export type { CompressionLevel, ConnectionOptions } from "./transport/connection.js";

/** The frontend that `serve()` opens by default: one on `grpcAddress` and `grpcPort`. */
export const defaultFrontends: DefaultFrontends = (options) => {
  if (!options.allowGrpc) return [];
  const { grpcAddress, grpcPort, grpcMaxReceiveMessageSize } = options;
  return [
    grpc({
      address: grpcAddress,
      port: grpcPort,
      maxReceiveMessageSize: grpcMaxReceiveMessageSize,
      maxReceiveMessageSizeName: "new Triton({ grpcMaxReceiveMessageSize })",
    }),
  ];
};
