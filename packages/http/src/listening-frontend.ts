import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import {
  acceptFaults,
  type Frontend,
  type FrontendAddress,
  type InferenceService,
  TritonError,
} from "@tritonjs/core";
import type { FastifyServerOptions } from "fastify";
import { answerClientError } from "./client-error.js";
import { addressesOf, listenAlso } from "./further-addresses.js";
import { type HttpLimits, limitOptions } from "./http-limits.js";
import { answerDirectly } from "./node/answer-directly.js";
import { OpenConnections } from "./open-connections.js";
import { resolveTls, type TlsOptions } from "./tls-options.js";
import type { V2Handler } from "./v2-handler.js";

/** Node's timers do not go further. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Where a frontend listens, and how it is called in messages. */
export interface ListenOptions {
  readonly name: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly address: string;
  readonly reusePort?: boolean;
  /** How a user chooses another port, for the error when this one is taken. */
  readonly portHint: string;
  readonly tls?: TlsOptions;
  readonly limits?: Partial<HttpLimits>;
  readonly logger?: FastifyServerOptions["logger"];
}

/** A frontend on a port of its own. */
export class ListeningFrontend implements Frontend {
  readonly name: string;
  readonly #options: ListenOptions;
  readonly #handlerOf: (service: InferenceService) => V2Handler;
  #server: Server | undefined;
  #connections: OpenConnections | undefined;
  /** Servers on the other addresses of the host. */
  #further: readonly Server[] = [];
  #stopping: Promise<void> | undefined;

  constructor(options: ListenOptions, handlerOf: (service: InferenceService) => V2Handler) {
    this.name = options.name;
    this.#options = options;
    this.#handlerOf = handlerOf;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { address, tls, limits, logger = false } = this.#options;
    const handler = this.#handlerOf(service);
    const server = openServer(limits, tls, await listenerOf(handler, logger));
    const connections = new OpenConnections(server, tls !== undefined);
    const bound = await this.#listen(server);
    const onFault = acceptFaults(service.log, this.name);
    for (const one of [server, ...this.#further]) one.on("error", onFault);
    this.#server = server;
    this.#connections = connections;
    const host = address.includes(":") ? `[${address}]` : address;
    const scheme = tls === undefined ? "http" : "https";
    return { host: address, port: bound, url: `${scheme}://${host}:${bound}` };
  }

  /** Listens on every address of the host, and tells the port. */
  async #listen(server: Server): Promise<number> {
    const { port, address, reusePort = false } = this.#options;
    try {
      const [first, ...others] = await addressesOf(address);
      server.listen(Object.assign({ port, host: first }, { reusePort }));
      await once(server, "listening");
      const bound = (server.address() as AddressInfo).port;
      this.#further = await listenAlso(others, { port: bound, reusePort }, (socket) =>
        server.emit("connection", socket),
      );
      return bound;
    } catch (cause) {
      server.close();
      throw this.#listenError(cause);
    }
  }

  /**
   * Goes on to listen, and to answer, until the requests at hand are answered: who comes now hears from the service that
   * it stops. Each connection ends with its next answer.
   */
  async stop(drainTimeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    const server = this.#server;
    const connections = this.#connections;
    if (server === undefined || connections === undefined) return;
    const expire = setTimeout(() => connections.endAll(), Math.min(drainTimeoutMs, LONGEST_TIMER_MS));
    this.#stopping ??= stopListening([server, ...this.#further], connections);
    await this.#stopping;
    clearTimeout(expire);
  }

  #listenError(cause: unknown): TritonError {
    const { port, portHint, address } = this.#options;
    const { code, message } = cause as NodeJS.ErrnoException;
    const fault =
      code === "EADDRINUSE"
        ? `port ${port} is already in use: choose another with ${portHint}`
        : `cannot listen on ${address}:${port}: ${message}`;
    return new TritonError("UNAVAILABLE", fault, { reason: "LISTEN_FAILED", cause });
  }
}

/** fastify is what has a logger: without one it is not even loaded. */
async function listenerOf(
  handler: V2Handler,
  logger: NonNullable<ListenOptions["logger"]>,
): Promise<RequestListener> {
  if (logger === false) return answerDirectly(handler);
  const { answerAndLog } = await import("./fastify/answer-and-log.js");
  return answerAndLog(handler, logger);
}

function openServer(limits: ListenOptions["limits"], tls: TlsOptions | undefined, listener: RequestListener) {
  const options = limitOptions(limits);
  const server =
    tls === undefined
      ? createServer(options, listener)
      : createTlsServer({ ...options, ...resolveTls(tls) }, listener);
  server.on("clientError", answerClientError);
  return server;
}

async function stopListening(servers: readonly Server[], connections: OpenConnections): Promise<void> {
  connections.keepNone();
  await connections.settled();
  const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
  connections.endIdle();
  await Promise.all(closed);
}
