import type { DefaultFrontends } from "@tritonjs/core/frontend";
import { grpc } from "./server.js";

export type { TlsOptions } from "@tritonjs/core/frontend";
export { addV2Service, type V2ServiceOptions } from "./add-v2-service.js";
export type { GrpcOptions } from "./grpc-options.js";
export type { RestrictedProtocols } from "./handlers/restrict.js";
export { grpc } from "./server.js";
export type { ConnectionOptions } from "./transport/http2/connection-options.js";
export type { CompressionLevel } from "./transport/http2/transport-options.js";

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
