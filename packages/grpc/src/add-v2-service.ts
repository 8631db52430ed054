import type { EventEmitter } from "node:events";
import {
  Metadata,
  type Server,
  type ServerDuplexStream,
  type ServiceDefinition,
  type status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { InferenceService, RequestMemory, RequestShare } from "@tritonjs/core/frontend";
import { checkOptionNames } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import { RETRY_PUSHBACK } from "@tritonjs/protocol/grpc";
import { HANDLER_OPTION_KEYS, type HandlerOptions, protocolMethods } from "./methods/protocol-methods.js";
import { Shutdown } from "./shutdown.js";
import { STATUS, statusOfFailure } from "./status-from-code.js";
import {
  type CallHeaders,
  decodeRequest,
  type Method,
  type ServedCall,
  serveCall,
} from "./transport/method.js";

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
  server: Pick<Server, "addService" | "removeService">,
  triton: { readonly service: InferenceService },
  options: V2ServiceOptions = {},
): void {
  checkOptionNames("addV2Service()", options, ["health", ...HANDLER_OPTION_KEYS]);
  const { service } = triton;
  const shutdown = new Shutdown();
  const methods = protocolMethods(service, options, shutdown);
  const services = grpcJsServices(methods, service.requestMemory);
  const { health = true } = options;
  addAll(server, health ? services : services.filter(({ name }) => name !== HEALTH_SERVICE));
  service.mount?.({ drain: () => shutdown.begin(), end: () => shutdown.expire() });
}

/** Adds method by method: when `addService` finds a method already present, it keeps the methods added before it. */
function addAll(
  server: Pick<Server, "addService" | "removeService">,
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

/** A service in the form that `addService` of grpc-js expects. */
interface GrpcJsService {
  /** `package.Service`. */
  readonly name: string;
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** Groups methods by the service in their paths. */
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
    this.headers = callHeaders(call.metadata);
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

/** Converts an error to the form in which grpc-js expects a status. */
function serviceErrorOf(error: unknown): Error & { code: status; details: string; metadata: Metadata } {
  const { code, details, retryAfterMs } = statusOfFailure(error);
  const metadata = new Metadata();
  if (retryAfterMs !== undefined) metadata.set(RETRY_PUSHBACK, String(retryAfterMs));
  return Object.assign(new Error(details), { code: code as status, details, metadata });
}

function callHeaders(metadata: Metadata): CallHeaders {
  return {
    get: (name) => metadata.get(name).find((value) => typeof value === "string"),
    *entries() {
      for (const name of Object.keys(metadata.getMap())) {
        for (const value of metadata.get(name)) if (typeof value === "string") yield [name, value];
      }
    },
  };
}
