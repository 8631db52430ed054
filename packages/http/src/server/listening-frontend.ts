import { lookup } from "node:dns/promises";
import {
  createServer,
  type Server as HttpServer,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { acceptFaults } from "@tritonjs/core/internal";
import { LONGEST_TIMEOUT_MS, typesOfDefaults } from "@tritonjs/protocol";
import {
  type FrontendAddress,
  type InferenceService,
  listenOnAll,
  placeInThreads,
  type ResolvedTlsOptions,
  resolveTls,
  type Served,
  type ServiceFrontend,
  serviceOf,
  type ThreadedFrontend,
  type ThreadedFrontendOptions,
  type TlsOptions,
} from "@tritonjs/server";
import { isLoopback } from "@tritonjs/server/internal";
import { type V2Handler, withAllowedHosts } from "../routes/v2-handler.js";
import type { FastifyServerOptions } from "./fastify.js";
import {
  answerClientError,
  answerDirectly,
  type ClientErrorBody,
  OpenConnections,
} from "./node-connections.js";

/** Address of a frontend, and its name in messages. */
export interface ListenOptions {
  readonly name: string;
  /** Port; 0 takes any free port. */
  readonly port: number;
  readonly address: string;
  readonly reusePort?: boolean;
  /** How a user chooses another port, for the error when the port is in use. */
  readonly portHint: string;
  readonly tls?: TlsOptions;
  readonly limits?: Partial<HttpLimits>;
  readonly logger?: FastifyServerOptions["logger"];
  /** Body of the answer to a request that could not be parsed, or to another host; Triton's form unless given. */
  readonly clientErrorBody?: ClientErrorBody;
  /** Options with which `http()` makes the same frontend in another thread; undefined if it cannot. */
  readonly threaded?: () => ThreadedFrontendOptions | undefined;
}

/** A frontend on a port of its own. */
export class ListeningFrontend implements ServiceFrontend {
  readonly name: string;
  readonly place = placeInThreads;
  readonly #handlerOf: (service: InferenceService) => V2Handler | Promise<V2Handler>;
  readonly #onListening: (address: FrontendAddress) => void;
  #connections: OpenConnections | undefined;
  /** One server for each address of the host. */
  #servers: readonly Server[] = [];
  #stopping: Promise<void> | undefined;

  /** @param onListening called once the frontend listens */
  constructor(
    private readonly options: ListenOptions,
    handlerOf: (service: InferenceService) => V2Handler | Promise<V2Handler>,
    onListening: (address: FrontendAddress) => void = () => {},
  ) {
    this.name = options.name;
    this.#handlerOf = handlerOf;
    this.#onListening = onListening;
  }

  get threaded(): ThreadedFrontend | undefined {
    const options = this.options.threaded?.();
    if (options === undefined) return undefined;
    const module = new URL("../index.js", import.meta.url).href;
    return { module, name: "http", options, listening: { portHint: this.options.portHint } };
  }

  async start(served: Served): Promise<FrontendAddress> {
    const service = serviceOf(served);
    const { address, reusePort = false, tls, limits, logger = false, clientErrorBody } = this.options;
    const at = { isLoopback: isLoopback(address) };
    const { allowedHosts = [] } = service;
    const handler = withAllowedHosts(
      await this.#handlerOf(service),
      // The address may be a name that the program gave this machine.
      allowedHosts === true || address.includes(":") ? allowedHosts : [...allowedHosts, address],
      at,
      clientErrorBody,
    );
    const listener = await listenerOf(handler, logger);
    const resolved = tls && resolveTls(tls, createSecureContext);
    let connections: OpenConnections | undefined;
    // The first server gets all connections, and can end all of them when it stops.
    const { port, servers } = await listenOnAll<Server>({ ...this.options, reusePort, lookup }, (first) => {
      // As the sockets of the first server.
      const sockets = { noDelay: true, allowHalfOpen: tls === undefined };
      if (first !== undefined) return createSocketServer(sockets, handOver(first));
      const server = openServer(limits, resolved, listener);
      const { sendTimeoutMs } = { ...DEFAULT_HTTP_LIMITS, ...limits };
      const open = new OpenConnections(server, tls !== undefined, sendTimeoutMs);
      server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
        if (error.code === "ECONNRESET") socket.destroy();
        else
          open.afterAnswers(socket, (hasBegun) =>
            answerClientError(error, socket, hasBegun, clientErrorBody),
          );
      });
      connections = open;
      return server;
    });
    at.isLoopback = servers.every((server) => isLoopback((server.address() as AddressInfo).address));
    const onFault = acceptFaults(service.log.of("http_server"), this.name);
    for (const server of servers) server.on("error", onFault);
    this.#servers = servers;
    this.#connections = connections;
    this.#stopping = undefined;
    const host = address.includes(":") ? `[${address}]` : address;
    const scheme = tls === undefined ? "http" : "https";
    const listensAt = { host: address, port, url: `${scheme}://${host}:${port}` };
    this.#onListening(listensAt);
    return listensAt;
  }

  leave(): void {
    this.#connections?.keepNone();
  }

  /**
   * Keeps listening while in-flight requests finish; the service answers new ones that it is stopping. Each connection
   * ends after its next answer.
   */
  async stop(drainTimeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    const connections = this.#connections;
    if (connections === undefined) return;
    const expire = setTimeout(() => connections.endAll(), Math.min(drainTimeoutMs, LONGEST_TIMEOUT_MS));
    this.#stopping ??= stopListening(this.#servers, connections);
    await this.#stopping;
    clearTimeout(expire);
  }
}

function handOver(server: Server): (socket: Socket) => void {
  return (socket) => void server.emit("connection", socket);
}

/** Only the logger needs fastify: without a logger, fastify is not loaded. */
async function listenerOf(
  handler: V2Handler,
  logger: NonNullable<ListenOptions["logger"]>,
): Promise<RequestListener> {
  if (logger === false) return answerDirectly(handler);
  const { answerAndLog } = await import("./v2-plugin.js");
  return answerAndLog(handler, logger);
}

function openServer(
  limits: ListenOptions["limits"],
  tls: ResolvedTlsOptions | undefined,
  listener: RequestListener,
): HttpServer {
  const options = limitOptions(limits);
  const server =
    tls === undefined ? createServer(options, listener) : createTlsServer({ ...options, ...tls }, listener);
  server.on("checkContinue", (request, response) => {
    answerExpectation(response);
    server.emit("request", request, response);
  });
  return server;
}

async function stopListening(servers: readonly Server[], connections: OpenConnections): Promise<void> {
  connections.keepNone();
  await connections.settled();
  const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
  connections.endIdle();
  await Promise.all(closed);
}

/** Limits on a single client of a server. */
export interface HttpLimits {
  /** Bytes of the request line and headers. A longer head gets 431. */
  readonly maxHeaderSize: number;
  /** Milliseconds to send the head, from the first byte or the opening of the connection. Then the answer is 408. */
  readonly headersTimeoutMs: number;
  /** Milliseconds to send a request in full. Then the answer is 408. */
  readonly requestTimeoutMs: number;
  /** Milliseconds that a connection stays open without a request. */
  readonly keepAliveTimeoutMs: number;
  /**
   * Milliseconds in which a client that is sent an answer must read some of it; 0 for no limit. Then its connection is
   * ended. The check is periodic, so it may take half as long again.
   */
  readonly sendTimeoutMs: number;
}

/** The defaults, with their reasons. */
export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  /** Node's default. */
  maxHeaderSize: 16_384,
  /** Node's default. */
  headersTimeoutMs: 60_000,
  /** Enough for 64 MiB at 2 Mbit/s. */
  requestTimeoutMs: 300_000,
  /** Longer than the minute after which load balancers close an idle connection: they should close it first. */
  keepAliveTimeoutMs: 72_000,
  /** nginx's `send_timeout`. */
  sendTimeoutMs: 60_000,
};

/** The names of the limits. */
export const HTTP_LIMIT_TYPES = typesOfDefaults(DEFAULT_HTTP_LIMITS);

/** Longest interval between checks for slow clients, in milliseconds. */
const MAX_CHECK_INTERVAL_MS = 30_000;

function limitOptions(limits: Partial<HttpLimits> = {}): ServerOptions {
  const { maxHeaderSize, headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = {
    ...DEFAULT_HTTP_LIMITS,
    ...limits,
  };
  const shortest = Math.min(headersTimeoutMs, requestTimeoutMs);
  return {
    requireHostHeader: false,
    maxHeaderSize,
    headersTimeout: shortest,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(MAX_CHECK_INTERVAL_MS, Math.ceil(shortest / 2)),
  };
}

/**
 * Tells a client with `Expect: 100-continue` to send its body, once it is the turn of its answer. Node.js would write this
 * between the head and the body of an answer that has to wait for an earlier one of the connection.
 */
function answerExpectation(response: ServerResponse): void {
  if (response.socket !== null) {
    response.writeContinue();
    return;
  }
  response.once("socket", () => {
    if (!response.headersSent) response.writeContinue();
  });
}
