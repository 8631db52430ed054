import type { Socket } from "node:net";
import { acceptFaults, type Frontend, type FrontendAddress, type InferenceService } from "@tritonjs/core";
import type { GrpcOptions } from "./grpc-options.js";
import { type ResolvedGrpcOptions, resolveGrpcOptions } from "./grpc-options.js";
import { protocolMethods } from "./handlers/methods.js";
import { Shutdown } from "./handlers/shutdown.js";
import { Http2Transport } from "./transport/http2/http2-transport.js";
import { type Listener, listen } from "./transport/listen.js";
import { overTls } from "./transport/tls.js";

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

/** Node's timers do not go further: a longer one would ring at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What a frontend has open between its start and its stop. */
interface Running {
  readonly listener: Listener;
  readonly transport: Http2Transport;
  readonly shutdown: Shutdown;
}

class GrpcFrontend implements Frontend {
  readonly name = "grpc";
  readonly #options: ResolvedGrpcOptions;
  #running: Running | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: ResolvedGrpcOptions) {
    this.#options = options;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { address, port, reusePort, tls } = this.#options;
    const shutdown = new Shutdown();
    const { requestMemory } = service;
    const methods = protocolMethods(service, this.#options, shutdown);
    const transport = new Http2Transport(methods, { ...this.#options, requestMemory });
    const accept = (socket: Socket): void => transport.accept(socket);
    const listener = await listen(
      address,
      { port, reusePort },
      tls === undefined ? accept : overTls(tls, accept),
      acceptFaults(service.log, this.name),
    );
    this.#running = { listener, transport, shutdown };
    this.#stopping = undefined;
    const host = address.includes(":") ? `[${address}]` : address;
    return { host: address, port: listener.port, url: `${host}:${listener.port}` };
  }

  stop(drainTimeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#running === undefined) return Promise.resolve();
    this.#stopping ??= this.#stop(this.#running, Math.min(drainTimeoutMs, this.#options.stopGraceMs));
    return this.#stopping;
  }

  async #stop({ listener, transport, shutdown }: Running, graceMs: number): Promise<void> {
    shutdown.begin();
    listener.close();
    const expire = setTimeout(() => shutdown.expire(), Math.min(graceMs, LONGEST_TIMER_MS));
    const destroyAfterMs = Math.min(graceMs + LAST_WORDS_MS, LONGEST_TIMER_MS);
    const destroy = setTimeout(() => listener.destroyConnections(), destroyAfterMs);
    await transport.stop();
    clearTimeout(expire);
    clearTimeout(destroy);
    listener.destroyConnections();
  }
}
