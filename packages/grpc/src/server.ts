import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Frontend, FrontendAddress, InferenceService } from "@tritonjs/core";
import type { GrpcOptions } from "./grpc-options.js";
import { type ResolvedGrpcOptions, resolveGrpcOptions } from "./grpc-options.js";
import { protocolMethods } from "./handlers/methods.js";
import { Shutdown } from "./handlers/shutdown.js";
import { grpcJsService } from "./transport/grpc-js-methods.js";
import { type Listener, listen } from "./transport/listen.js";

/**
 * The v2 protocol over gRPC, for `serve({ frontends: [...] })`.
 *
 * @example
 * ```ts
 * await triton.serve({ frontends: [grpc({ port: 8001 })] });
 * ```
 */
export function grpc(options: GrpcOptions = {}): Frontend {
  return new GrpcFrontend(resolveGrpcOptions(options));
}

/** Time to send the status of calls that are cut off. */
const LAST_WORDS_MS = 500;

class GrpcFrontend implements Frontend {
  readonly name = "grpc";
  readonly #options: ResolvedGrpcOptions;
  readonly #shutdown = new Shutdown();
  #server: Server | undefined;
  #listener: Listener | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: ResolvedGrpcOptions) {
    this.#options = options;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { address, port, maxReceiveMessageSize } = this.#options;
    const server = new Server({
      "grpc.max_receive_message_length": maxReceiveMessageSize,
      "grpc.max_send_message_length": -1,
      "grpc.enable_channelz": 0,
    });
    const { definition, implementation } = grpcJsService(
      protocolMethods(service, this.#options, this.#shutdown),
    );
    server.addService(definition, implementation);
    const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = await listen(address, port, (socket) => injector.injectConnection(socket));
    this.#server = server;
    const bound = this.#listener.port;
    return { host: address, port: bound, url: `${address}:${bound}` };
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#shutdown.begin();
    this.#listener?.close();
    const server = this.#server;
    if (server === undefined) return;
    const expire = setTimeout(() => this.#shutdown.expire(), this.#options.stopGraceMs);
    const destroy = setTimeout(
      () => this.#listener?.destroyConnections(),
      this.#options.stopGraceMs + LAST_WORDS_MS,
    );
    await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    clearTimeout(expire);
    clearTimeout(destroy);
  }
}
