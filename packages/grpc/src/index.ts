import { lookup } from "node:dns/promises";
import type { EventEmitter } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import {
  type Server as GrpcJsServer,
  Metadata,
  type ServerDuplexStream,
  type ServiceDefinition,
  type status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { acceptFaults, type DefaultFrontends } from "@tritonjs/core/internal";
import {
  assertOptions,
  definedMembers,
  LONGEST_TIMEOUT_MS,
  optionTypes,
  TritonError,
  typesOfDefaults,
} from "@tritonjs/protocol";
import { RETRY_PUSHBACK } from "@tritonjs/protocol/grpc";
import {
  type FrontendAddress,
  listenOnAll,
  placeInThreads,
  type RequestMemory,
  type RequestShare,
  type Served,
  type ServiceFrontend,
  serviceOf,
  type ThreadedFrontend,
  type TlsOptions,
} from "@tritonjs/server";
import { HANDLER_OPTION_TYPES, type HandlerOptions, protocolMethods } from "./methods/protocol-methods.js";
import { Shutdown } from "./shutdown.js";
import { STATUS, statusOfFailure } from "./status-from-code.js";
import {
  CONNECTION_DEFAULTS,
  type CompressionLevel,
  type ConnectionOptions,
  overTls,
} from "./transport/connection.js";
import { Http2Transport } from "./transport/http2-transport.js";
import {
  type CallHeaders,
  decodeRequest,
  type Method,
  type ServedCall,
  serveCall,
} from "./transport/method.js";

export type { TlsOptions } from "@tritonjs/server";
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
export function grpc(options: GrpcOptions = {}): ServiceFrontend {
  return new GrpcFrontend(resolveGrpcOptions(options));
}

/** Milliseconds to send the status of calls that the shutdown ends. */
const LAST_WORDS_MS = 500;

/** Resolves when the event loop has accepted the connections and read the bytes that wait now. */
async function polled(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
}

const LISTENING = { joinsFamilies: true, portHint: "the option grpcPort (or grpc({ port }))" };

class GrpcFrontend implements ServiceFrontend {
  readonly name = "grpc";
  readonly place = placeInThreads;
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

  async start(served: Served): Promise<FrontendAddress> {
    const service = serviceOf(served);
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
    const onFault = acceptFaults(service.log.of("grpc_server"), this.name);
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

const GRPC_OPTION_TYPES = {
  ...typesOfDefaults(GRPC_DEFAULTS),
  // The options without a default.
  ...optionTypes<Omit<GrpcOptions, keyof HandlerOptions | keyof typeof GRPC_DEFAULTS>>({
    tls: "object",
    maxConnectionAgeMs: "number",
    maxConnectionAgeGraceMs: "number",
  }),
  ...HANDLER_OPTION_TYPES,
};

type ResolvedGrpcOptions = GrpcOptions & typeof GRPC_DEFAULTS;

/**
 * Fills in the defaults.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 */
function resolveGrpcOptions(options: GrpcOptions): ResolvedGrpcOptions {
  assertOptions("grpc()", options, GRPC_OPTION_TYPES);
  return { ...GRPC_DEFAULTS, ...definedMembers(options) };
}

/** Options of {@link addV2Service}. */
export interface V2ServiceOptions extends HandlerOptions {
  /** Adds `grpc.health.v1.Health` too. Set it to false when the server already has a health service. @default true */
  readonly health?: boolean;
}

const HEALTH_SERVICE = "grpc.health.v1.Health";

/**
 * Adds the v2 protocol to a server of `@grpc/grpc-js` that the program opens and closes itself. The services are
 * `inference.GRPCInferenceService`, `grpc.health.v1.Health` and, with `reflection`, server reflection. Call it before
 * or after `bindAsync`.
 *
 * The server keeps its port, credentials, interceptors and limits: set `grpc.max_receive_message_length` for messages
 * above 4 MiB. When the `Triton` closes, the methods reject new requests with UNAVAILABLE, and requests in flight
 * finish.
 *
 * @param triton a `Triton`, or any other object with a service
 * @throws TritonError ALREADY_EXISTS when the server already has one of the services. Then none is added.
 * INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * const server = new Server({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
 * server.addService(greeterDefinition, greeter);
 * addV2Service(server, triton);
 * ```
 */
export function addV2Service(
  server: Pick<GrpcJsServer, "addService" | "removeService">,
  triton: Served,
  options: V2ServiceOptions = {},
): void {
  assertOptions("addV2Service()", options, { health: "boolean", ...HANDLER_OPTION_TYPES });
  const service = serviceOf(triton);
  const shutdown = new Shutdown();
  const methods = protocolMethods(service, options, shutdown);
  const services = grpcJsServices(methods, service.requestMemory);
  const { health = true } = options;
  addAll(server, health ? services : services.filter(({ name }) => name !== HEALTH_SERVICE));
  service.mount?.({ drain: () => shutdown.begin(), end: () => shutdown.expire() });
}

/** Adds method by method: when `addService` finds a method already present, it keeps the methods added before it. */
function addAll(
  server: Pick<GrpcJsServer, "addService" | "removeService">,
  services: readonly GrpcJsService[],
): void {
  const added: GrpcJsService["definition"][] = [];
  for (const { name, definition, implementation } of services) {
    for (const [path, method] of Object.entries(definition)) {
      const one = { [path]: method };
      try {
        server.addService(one, implementation);
      } catch (cause) {
        for (const earlier of added) server.removeService(earlier);
        throw new TritonError("ALREADY_EXISTS", clashText(name), { cause });
      }
      added.push(one);
    }
  }
}

function clashText(name: string): string {
  const hint =
    name === HEALTH_SERVICE
      ? "; call addV2Service with { health: false } to keep the one of the server"
      : name.startsWith("grpc.reflection.")
        ? "; call addV2Service without { reflection: true } to keep the one of the server"
        : "";
  return `cannot add the service ${name}: the server already has it${hint}`;
}

interface GrpcJsService {
  /** `package.Service`. */
  readonly name: string;
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

function grpcJsServices(methods: readonly Method[], memory: RequestMemory): GrpcJsService[] {
  const names = [...new Set(methods.map(({ path }) => serviceOfPath(path)))];
  return names.map((name) => {
    const own = methods.filter(({ path }) => serviceOfPath(path) === name);
    return {
      name,
      definition: Object.fromEntries(own.map((method) => [method.path, definitionOf(method.path)])),
      implementation: Object.fromEntries(own.map((method) => [method.path, handlerOf(method, memory)])),
    };
  });
}

/** `package.Service` of `/package.Service/Method`. */
function serviceOfPath(path: string): string {
  return path.slice(1, path.lastIndexOf("/"));
}

/** All methods are streams in both directions to grpc-js: `serveCall` reads the only message of those that have one. */
function definitionOf(path: string): ServiceDefinition[string] {
  return {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

const identity = (bytes: Buffer): Buffer => bytes;

function handlerOf(method: Method, memory: RequestMemory) {
  return (call: ServerDuplexStream<Buffer, Buffer>): void =>
    serveCall(method, new GrpcJsCall(call, method, memory));
}

const GOOD_END = { code: STATUS.OK, details: "" };

/**
 * A call of grpc-js, in the form that handlers expect. Messages pass to and from grpc-js as bytes. So a message that is
 * rejected or cannot be encoded ends its call with the same status as over node:http2.
 */
class GrpcJsCall implements ServedCall {
  /** Interceptors see the messages too. */
  readonly ownsMessages = false;
  readonly headers: CallHeaders;
  /** Metadata of the end; undefined for most calls. */
  #trailers: Metadata | undefined;
  #ended = false;

  constructor(
    private readonly call: ServerDuplexStream<Buffer, Buffer>,
    private readonly method: Method,
    private readonly memory: RequestMemory,
  ) {
    this.headers = callHeaders(call.metadata, () => call.getDeadline());
  }

  /** grpc-js reports the address with the port: `127.0.0.1:54321`, `[::1]:54321`. */
  get remoteAddress(): string | undefined {
    const peer = this.call.getPeer();
    return /^\[?(.*?)\]?:\d+$/.exec(peer)?.[1] ?? peer;
  }

  addTrailer(name: string, value: string | Uint8Array): void {
    this.#trailers ??= new Metadata();
    this.#trailers.set(name, typeof value === "string" ? value : Buffer.from(value));
  }

  /** grpc-js emits `cancelled` at the end of every call, answered ones included. */
  onClose(listener: () => void): void {
    if (this.call.cancelled) listener();
    else (this.call as EventEmitter).once("cancelled", listener);
  }

  onMessage(listener: (message: unknown, share: RequestShare) => void): void {
    this.call.on("data", (bytes: Buffer) => {
      if (this.#ended) return;
      const share = this.memory.share();
      let message: unknown;
      try {
        share.take(bytes.length);
        message = decodeRequest(this.method, bytes);
      } catch (error) {
        share.release();
        this.fail(error);
        return;
      }
      listener(message, share);
    });
  }

  onHalfClose(listener: () => void): void {
    this.call.on("end", listener);
  }

  onDrain(listener: () => void): void {
    this.call.on("drain", listener);
  }

  pause(): void {
    this.call.pause();
  }

  resume(): void {
    this.call.resume();
  }

  write(message: unknown): boolean {
    if (this.#ended || this.call.cancelled) return true;
    return this.call.write(joinedParts(this.method.encode(message)));
  }

  end(error?: Error): void {
    if (error === undefined) this.#finish({ ...GOOD_END, metadata: this.#trailers });
    else this.fail(error);
  }

  fail(error: unknown): void {
    this.#finish(serviceErrorOf(error));
  }

  /**
   * An `error` event sets the status, even of a successful call: otherwise grpc-js would send the text "OK" with it.
   */
  #finish(status: object): void {
    if (this.#ended || this.call.cancelled) return;
    this.#ended = true;
    this.call.emit("error", status);
  }
}

/** Joins a message to one piece: grpc-js does not accept parts. */
function joinedParts(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts;
  return parts.length === 1 && Buffer.isBuffer(first) ? first : Buffer.concat(parts);
}

function serviceErrorOf(error: unknown): Error & { code: status; details: string; metadata: Metadata } {
  const { code, details, retryAfterMs } = statusOfFailure(error);
  const metadata = new Metadata();
  if (retryAfterMs !== undefined) metadata.set(RETRY_PUSHBACK, String(retryAfterMs));
  return Object.assign(new Error(details), { code: code as status, details, metadata });
}

/** @param deadline grpc-js takes `grpc-timeout` out of the metadata, and tells the deadline */
function callHeaders(metadata: Metadata, deadline: () => Date | number): CallHeaders {
  return {
    get: (name) =>
      name === "grpc-timeout"
        ? timeoutText(deadline())
        : metadata.get(name).find((value) => typeof value === "string"),
    *entries() {
      for (const name of Object.keys(metadata.getMap())) {
        for (const value of metadata.get(name)) if (typeof value === "string") yield [name, value];
      }
    },
  };
}

/** A deadline as gRPC's header has it; undefined for none. */
function timeoutText(deadline: Date | number): string | undefined {
  const leftMs = Math.max(0, Math.round(Number(deadline) - Date.now()));
  return leftMs < 1e8 ? `${leftMs}m` : undefined;
}
