import { lookup } from "node:dns/promises";
import { createServer, type Server as HttpServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import type { Frontend } from "@tritonjs/core";
import {
  acceptFaults,
  type FrontendAddress,
  type InferenceService,
  isLoopback,
  listenOnAll,
  type ResolvedTlsOptions,
  resolveTls,
  type ThreadedFrontend,
  type ThreadedFrontendOptions,
  type TlsOptions,
} from "@tritonjs/core/frontend";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import type { FastifyServerOptions } from "../fastify/fastify.js";
import { answerDirectly } from "../node/direct-listener.js";
import { withAllowedHosts } from "../v2/allowed-hosts.js";
import type { V2Handler } from "../v2/v2-handler.js";
import { answerExpectation } from "./answer-expectation.js";
import { answerClientError, type ClientErrorBody } from "./client-error.js";
import { DEFAULT_HTTP_LIMITS, type HttpLimits, limitOptions } from "./http-limits.js";
import { OpenConnections } from "./open-connections.js";

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
export class ListeningFrontend implements Frontend {
  readonly name: string;
  readonly #options: ListenOptions;
  readonly #handlerOf: (service: InferenceService) => V2Handler;
  readonly #onListening: (address: FrontendAddress) => void;
  #connections: OpenConnections | undefined;
  /** One server for each address of the host. */
  #servers: readonly Server[] = [];
  #stopping: Promise<void> | undefined;

  /** @param onListening called once the frontend listens */
  constructor(
    options: ListenOptions,
    handlerOf: (service: InferenceService) => V2Handler,
    onListening: (address: FrontendAddress) => void = () => {},
  ) {
    this.name = options.name;
    this.#options = options;
    this.#handlerOf = handlerOf;
    this.#onListening = onListening;
  }

  get threaded(): ThreadedFrontend | undefined {
    const options = this.#options.threaded?.();
    if (options === undefined) return undefined;
    const module = new URL("../index.js", import.meta.url).href;
    return { module, name: "http", options, listening: { portHint: this.#options.portHint } };
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { address, reusePort = false, tls, limits, logger = false, clientErrorBody } = this.#options;
    let loopback = isLoopback(address);
    const { allowedHosts = [] } = service;
    const handler = withAllowedHosts(
      this.#handlerOf(service),
      // The address may be a name that the program gave this machine.
      allowedHosts === true || address.includes(":") ? allowedHosts : [...allowedHosts, address],
      () => loopback,
      clientErrorBody,
    );
    const listener = await listenerOf(handler, logger);
    const resolved = tls && resolveTls(tls, createSecureContext);
    let connections: OpenConnections | undefined;
    // The first server gets all connections, and can end all of them when it stops.
    const { port, servers } = await listenOnAll<Server>({ ...this.#options, reusePort, lookup }, (first) => {
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
    loopback = servers.every((server) => isLoopback((server.address() as AddressInfo).address));
    const onFault = acceptFaults(service.log, this.name);
    for (const server of servers) server.on("error", onFault);
    this.#servers = servers;
    this.#connections = connections;
    const host = address.includes(":") ? `[${address}]` : address;
    const scheme = tls === undefined ? "http" : "https";
    const at = { host: address, port, url: `${scheme}://${host}:${port}` };
    this.#onListening(at);
    return at;
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

/** Makes a listener that hands the connections of another descriptor to a server. */
function handOver(server: Server): (socket: Socket) => void {
  return (socket) => void server.emit("connection", socket);
}

/** Only the logger needs fastify: without a logger, fastify is not loaded. */
async function listenerOf(
  handler: V2Handler,
  logger: NonNullable<ListenOptions["logger"]>,
): Promise<RequestListener> {
  if (logger === false) return answerDirectly(handler);
  const { answerAndLog } = await import("../fastify/logging-listener.js");
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
