import type { AddressInfo } from "node:net";
import { type Frontend, type FrontendAddress, type InferenceService, TritonError } from "@tritonjs/core";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { answerClientError } from "./client-error.js";
import { REQUEST_TIMEOUT_MS } from "./limits.js";
import { OpenConnections } from "./open-connections.js";

/** Node's timers do not go further. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Where a frontend listens, and how it is called in messages. */
export interface ListenOptions {
  readonly name: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly address: string;
  /** How a user chooses another port, for the error when this one is taken. */
  readonly portHint: string;
  readonly logger?: FastifyServerOptions["logger"];
}

/** Puts routes on an application, for a service. */
export type Mount = (app: FastifyInstance, service: InferenceService) => void;

/** A frontend that is a fastify application on a port of its own. */
export class ListeningFrontend implements Frontend {
  readonly name: string;
  readonly #options: ListenOptions;
  readonly #serverOptions: (service: InferenceService) => FastifyServerOptions;
  readonly #mount: Mount;
  #app: FastifyInstance | undefined;
  #connections: OpenConnections | undefined;

  constructor(
    options: ListenOptions,
    mount: Mount,
    serverOptions: (service: InferenceService) => FastifyServerOptions = () => ({}),
  ) {
    this.name = options.name;
    this.#options = options;
    this.#mount = mount;
    this.#serverOptions = serverOptions;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const { port, address, logger = false } = this.#options;
    const app = fastify({
      logger,
      requestTimeout: REQUEST_TIMEOUT_MS,
      forceCloseConnections: "idle",
      http: { requireHostHeader: false },
      clientErrorHandler: answerClientError,
      ...this.#serverOptions(service),
    });
    closeAsAnswered(app);
    this.#connections = new OpenConnections(app.server);
    this.#mount(app, service);
    try {
      await app.listen({ port, host: address });
    } catch (cause) {
      await app.close();
      throw this.#listenError(cause);
    }
    this.#app = app;
    const bound = app.server.address() as AddressInfo;
    const host = bound.family === "IPv6" && address.includes(":") ? `[${address}]` : address;
    return { host: address, port: bound.port, url: `http://${host}:${bound.port}` };
  }

  async stop(drainTimeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#app === undefined) return;
    const closed = this.#app.close();
    this.#connections?.endIdle();
    const expire = setTimeout(() => this.#connections?.endAll(), Math.min(drainTimeoutMs, LONGEST_TIMER_MS));
    await closed;
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

/** From the moment the application closes, lets each connection end with the answer that it waits for. */
function closeAsAnswered(app: FastifyInstance): void {
  let closing = false;
  app.addHook("preClose", (next) => {
    closing = true;
    next();
  });
  app.addHook("onSend", (_request, reply, _payload, next) => {
    if (closing) reply.header("connection", "close");
    next();
  });
  // An answer that had begun before could not say so.
  app.addHook("onResponse", (_request, _reply, next) => {
    if (closing) setImmediate(() => app.server.closeIdleConnections());
    next();
  });
}
