import type { Socket } from "node:net";
import { type ConnectionInjector, Server, ServerCredentials, type ServerOptions } from "@grpc/grpc-js";
import { limitMemory, type SharesOfMessages } from "./grpc-js-memory.js";
import { grpcJsService } from "./grpc-js-methods.js";
import type { Method } from "./method.js";
import { sessionMegabytes } from "./session-memory.js";
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
  readonly #sockets = new Set<Socket>();

  constructor(methods: readonly Method[], options: TransportOptions) {
    const { requestMemory, maxReceiveMessageSize } = options;
    const shares: SharesOfMessages = new WeakMap();
    this.#server = new Server({
      ...connectionOptions(options),
      "grpc.max_receive_message_length": maxReceiveMessageSize,
      "grpc.max_send_message_length": -1,
      "grpc.enable_channelz": 0,
      interceptors: [limitMemory(requestMemory, maxReceiveMessageSize, shares)],
    });
    const { definition, implementation } = grpcJsService(methods, requestMemory, shares);
    this.#server.addService(definition, implementation);
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
  }

  accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#injector.injectConnection(socket);
  }

  /**
   * Newer versions of Node close the sessions themselves, and grpc-js then takes them for gone while their calls go on:
   * the connections over which something came are waited for here.
   */
  async stop(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    const used = [...this.#sockets].filter((socket) => socket.bytesRead > 0);
    await Promise.all(used.map((socket) => new Promise((resolve) => socket.once("close", resolve))));
  }
}

function connectionOptions(options: TransportOptions): ServerOptions {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = options;
  return {
    "grpc.keepalive_time_ms": options.keepaliveTimeMs,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs,
    "grpc.max_concurrent_streams": options.maxConcurrentStreams,
    "grpc-node.max_session_memory": sessionMegabytes(options),
    ...(maxConnectionAgeMs !== undefined && { "grpc.max_connection_age_ms": maxConnectionAgeMs }),
    ...(maxConnectionAgeGraceMs !== undefined && {
      "grpc.max_connection_age_grace_ms": maxConnectionAgeGraceMs,
    }),
  };
}
