import { lookup } from "node:dns/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Frontend } from "@tritonjs/core";
import {
  type FrontendAddress,
  type InferenceService,
  listenOnAll,
  type TlsOptions,
} from "@tritonjs/core/frontend";
import {
  acceptFaults,
  checkOptionNames,
  type DefaultFrontends,
  keyList,
  type ThreadedFrontend,
} from "@tritonjs/core/internal";
import { definedMembers, LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { HANDLER_OPTION_KEYS, type HandlerOptions, protocolMethods } from "./methods/protocol-methods.js";
import { Shutdown } from "./shutdown.js";
import {
  CONNECTION_DEFAULTS,
  type CompressionLevel,
  type ConnectionOptions,
  overTls,
} from "./transport/connection.js";
import { Http2Transport } from "./transport/http2-transport.js";

export type { TlsOptions } from "@tritonjs/core/frontend";
export { addV2Service, type V2ServiceOptions } from "./add-v2-service.js";

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

/**
 * The v2 protocol over gRPC, for `serve({ frontends: [...] })`.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [grpc({ port: 8001 })] });
 * ```
 */
export function grpc(options: GrpcOptions = {}): Frontend {
  return new GrpcFrontend(resolveGrpcOptions(options));
}

/** Milliseconds to send the status of calls that the shutdown ends. */
const LAST_WORDS_MS = 500;

/** Resolves when the event loop has accepted the connections and read the bytes that wait now. */
async function polled(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
}

const LISTENING = { joinsFamilies: true, portHint: "the option grpcPort (or grpc({ port }))" };

class GrpcFrontend implements Frontend {
  readonly name = "grpc";
  /** One server for each address of the host. */
  #servers: readonly Server[] = [];
  readonly #sockets = new Set<Socket>();
  #transport: Http2Transport | undefined;
  #shutdown = new Shutdown();
  #stopping: Promise<void> | undefined;

  constructor(private readonly options: ResolvedGrpcOptions) {}

  get threaded(): ThreadedFrontend {
    const module = new URL("./index.js", import.meta.url).href;
    return { module, name: "grpc", options: this.options, listening: LISTENING };
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { address, port, reusePort, tls } = this.options;
    const shutdown = new Shutdown();
    const { requestMemory } = service;
    const methods = protocolMethods(service, this.options, shutdown);
    const { maxReceiveMessageSize: bytes, maxReceiveMessageSizeName: name } = this.options;
    const options = { ...this.options, messageLimit: { bytes, name }, requestMemory };
    const transport = new Http2Transport(methods, options);
    const accept = (socket: Socket): void => transport.accept(socket);
    const acceptBare = tls === undefined ? accept : overTls(tls, accept);
    const watch = (socket: Socket): void => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      acceptBare(socket);
    };
    const listening = await listenOnAll<Server>({ address, port, reusePort, ...LISTENING, lookup }, () =>
      createServer({ noDelay: true }, watch),
    );
    const { servers } = listening;
    const onFault = acceptFaults(service.log, this.name);
    for (const server of servers) server.on("error", onFault);
    this.#servers = servers;
    this.#transport = transport;
    this.#shutdown = shutdown;
    this.#stopping = undefined;
    const host = address.includes(":") ? `[${address}]` : address;
    return { host: address, port: listening.port, url: `${host}:${listening.port}` };
  }

  leave(): void {
    this.#transport?.leave();
  }

  async settle(): Promise<void> {
    if (this.#transport === undefined) return;
    // The system resets connections that it has accepted and the server has not.
    await polled();
    for (const server of this.#servers) server.close();
    await this.#transport.settle();
  }

  stop(drainTimeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#transport === undefined) return Promise.resolve();
    this.#stopping ??= this.#stop(this.#transport, Math.min(drainTimeoutMs, this.options.stopGraceMs));
    return this.#stopping;
  }

  async #stop(transport: Http2Transport, graceMs: number): Promise<void> {
    const shutdown = this.#shutdown;
    const destroyConnections = (): void => this.#sockets.forEach((socket) => void socket.destroy());
    shutdown.begin();
    for (const server of this.#servers) server.close();
    const expire = setTimeout(() => shutdown.expire(), Math.min(graceMs, LONGEST_TIMEOUT_MS));
    const destroyAfterMs = Math.min(graceMs + LAST_WORDS_MS, LONGEST_TIMEOUT_MS);
    const destroy = setTimeout(destroyConnections, destroyAfterMs);
    await transport.stop();
    clearTimeout(expire);
    clearTimeout(destroy);
    destroyConnections();
  }
}

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
   * Name of `maxReceiveMessageSize` in errors, for a program whose users set it elsewhere: `--max-message` in "Use
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
  ...Object.keys(GRPC_DEFAULTS),
  // The options without a default.
  ...keyList<Omit<GrpcOptions, keyof HandlerOptions | keyof typeof GRPC_DEFAULTS>>({
    tls: true,
    maxConnectionAgeMs: true,
    maxConnectionAgeGraceMs: true,
  }),
  ...HANDLER_OPTION_KEYS,
];

/** Options with all defaults filled in. */
type ResolvedGrpcOptions = GrpcOptions & typeof GRPC_DEFAULTS;

/**
 * Fills in the defaults.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 */
function resolveGrpcOptions(options: GrpcOptions): ResolvedGrpcOptions {
  checkOptionNames("grpc()", options, GRPC_OPTION_KEYS);
  return { ...GRPC_DEFAULTS, ...definedMembers(options) };
}
