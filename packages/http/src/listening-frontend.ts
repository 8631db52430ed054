import type { AddressInfo, Server } from "node:net";
import { type Frontend, type FrontendAddress, type InferenceService, TritonError } from "@tritonjs/core";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { answerClientError } from "./client-error.js";
import { addressesOf, listenAlso } from "./further-addresses.js";
import { type HttpLimits, limitOptions } from "./http-limits.js";
import { OpenConnections } from "./open-connections.js";
import { resolveTls, type TlsOptions } from "./tls-options.js";

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

/** What a frontend answers. */
export interface Routes extends Pick<FastifyServerOptions, "frameworkErrors"> {
  /** Puts the routes on the application. */
  mount(app: FastifyInstance): void;
}

/** A frontend that is a fastify application on a port of its own. */
export class ListeningFrontend implements Frontend {
  readonly name: string;
  readonly #options: ListenOptions;
  readonly #routes: (service: InferenceService) => Routes;
  #app: FastifyInstance | undefined;
  #connections: OpenConnections | undefined;
  /** Servers on the other addresses of the host. */
  #further: readonly Server[] = [];
  #stopping: Promise<void> | undefined;

  constructor(options: ListenOptions, routes: (service: InferenceService) => Routes) {
    this.name = options.name;
    this.#options = options;
    this.#routes = routes;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { address, tls, limits, logger = false } = this.#options;
    const { mount, frameworkErrors } = this.#routes(service);
    const app = fastify({
      logger,
      ...limitOptions(limits),
      https: tls === undefined ? null : resolveTls(tls),
      // While the server stops, the routes go on to answer by themselves.
      return503OnClosing: false,
      clientErrorHandler: answerClientError,
      frameworkErrors,
    } as FastifyServerOptions) as FastifyInstance;
    app.addHook("onSend", (_request, reply, _payload, next) => {
      if (this.#stopping !== undefined) reply.header("connection", "close");
      next();
    });
    this.#connections = new OpenConnections(app.server, tls !== undefined);
    mount(app);
    const bound = await this.#listen(app);
    this.#app = app;
    const host = address.includes(":") ? `[${address}]` : address;
    const scheme = tls === undefined ? "http" : "https";
    return { host: address, port: bound, url: `${scheme}://${host}:${bound}` };
  }

  /** Listens on every address of the host, and tells the port. */
  async #listen(app: FastifyInstance): Promise<number> {
    const { port, address, reusePort = false } = this.#options;
    try {
      const [first, ...others] = await addressesOf(address);
      await app.listen(Object.assign({ port, host: first }, { reusePort }));
      const bound = (app.server.address() as AddressInfo).port;
      this.#further = await listenAlso(others, { port: bound, reusePort }, (socket) =>
        app.server.emit("connection", socket),
      );
      return bound;
    } catch (cause) {
      await app.close();
      throw this.#listenError(cause);
    }
  }

  /**
   * Goes on to listen, and to answer, until the requests at hand are answered: who comes now hears from the service that
   * it stops. Each connection ends with its next answer.
   */
  async stop(drainTimeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    const app = this.#app;
    const connections = this.#connections;
    if (app === undefined || connections === undefined) return;
    const expire = setTimeout(() => connections.endAll(), Math.min(drainTimeoutMs, LONGEST_TIMER_MS));
    this.#stopping ??= stopListening(app, this.#further, connections);
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
    return new TritonError("UNAVAILABLE", fault, { cause });
  }
}

async function stopListening(
  app: FastifyInstance,
  further: readonly Server[],
  connections: OpenConnections,
): Promise<void> {
  await connections.settled();
  for (const server of further) server.close();
  const closed = app.close();
  connections.endIdle();
  await closed;
}
