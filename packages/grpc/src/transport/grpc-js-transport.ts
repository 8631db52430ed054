import type { Socket } from "node:net";
import { type ConnectionInjector, Server, ServerCredentials, type ServerOptions } from "@grpc/grpc-js";
import { grpcJsService } from "./grpc-js-methods.js";
import type { Method } from "./method.js";
import type { Transport, TransportOptions } from "./transport.js";

/** What grpc-js' server cannot be told. */
export const NOT_WITH_GRPC_JS = [
  "keepalivePermitWithoutCalls",
  "http2MaxPingsWithoutData",
  "http2MinRecvPingIntervalWithoutDataMs",
  "http2MaxPingStrikes",
  "maxMetadataSize",
  "inferResponseCompressionLevel",
] as const;

/** gRPC on grpc-js' server. */
export class GrpcJsTransport implements Transport {
  readonly #server: Server;
  readonly #injector: ConnectionInjector;

  constructor(methods: readonly Method[], options: TransportOptions) {
    this.#server = new Server({
      ...connectionOptions(options),
      "grpc.max_receive_message_length": options.maxReceiveMessageSize,
      "grpc.max_send_message_length": -1,
      "grpc.enable_channelz": 0,
    });
    const { definition, implementation } = grpcJsService(methods);
    this.#server.addService(definition, implementation);
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
  }

  accept(socket: Socket): void {
    this.#injector.injectConnection(socket);
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.tryShutdown(() => resolve()));
  }
}

function connectionOptions(options: TransportOptions): ServerOptions {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = options;
  return {
    "grpc.keepalive_time_ms": options.keepaliveTimeMs,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs,
    "grpc.max_concurrent_streams": options.maxConcurrentStreams,
    ...(maxConnectionAgeMs !== undefined && { "grpc.max_connection_age_ms": maxConnectionAgeMs }),
    ...(maxConnectionAgeGraceMs !== undefined && {
      "grpc.max_connection_age_grace_ms": maxConnectionAgeGraceMs,
    }),
  };
}
