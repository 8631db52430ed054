import type { Socket } from "node:net";
import { type ConnectionInjector, Server, ServerCredentials } from "@grpc/grpc-js";
import { grpcJsService } from "./grpc-js-methods.js";
import type { Method } from "./method.js";
import type { Transport, TransportOptions } from "./transport.js";

/** gRPC on grpc-js' server. */
export class GrpcJsTransport implements Transport {
  readonly #server: Server;
  readonly #injector: ConnectionInjector;

  constructor(methods: readonly Method[], { maxReceiveMessageSize }: TransportOptions) {
    this.#server = new Server({
      "grpc.max_receive_message_length": maxReceiveMessageSize,
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
