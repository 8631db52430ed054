import type { EventEmitter } from "node:events";
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { RefusedCall, STATUS } from "../status-from-code.js";
import { Connection, type TransportOptions } from "./connection.js";
import { Http2Call, sendStatus } from "./http2-call.js";
import { type CallHeaders, type Method, serveCall } from "./method.js";

/** HTTP/2 flow-control window in bytes, for each stream and for a connection. */
const WINDOW_SIZE = 8 * 1024 * 1024;
const MAX_FRAME_SIZE = 1024 * 1024;

/** Milliseconds that a new connection has for its first bytes when the server stops, as over HTTP. */
const FIRST_BYTES_MS = 50;

/** Milliseconds in which calls on their way arrive before that, after an exit delay. */
const ARRIVAL_MS = 1000;

/**
 * Accepts headers with values that begin or end with a space, as gRPC does. Node has the option from 22.17 on, and
 * otherwise drops such headers. Its types lack the option.
 */
const KEEP_WHITESPACE = { strictFieldWhitespaceValidation: false } as const;

/** gRPC on Node's own HTTP/2 server, with windows that are large enough for tensors. */
export class Http2Transport {
  readonly #server: Http2Server;
  readonly #methods: ReadonlyMap<string, Method>;
  readonly #connections = new Map<ServerHttp2Session, Connection>();
  /** The socket of the session that is being created, which happens synchronously. */
  #accepting: Socket | undefined;
  /** Sessions whose client has not sent anything yet. */
  readonly #silent = new Set<ServerHttp2Session>();

  constructor(
    methods: readonly Method[],
    private readonly options: TransportOptions,
  ) {
    this.#methods = new Map(methods.map((method) => [method.path, method]));
    this.#server = createServer({
      settings: {
        initialWindowSize: WINDOW_SIZE,
        maxFrameSize: MAX_FRAME_SIZE,
        maxConcurrentStreams: options.maxConcurrentStreams,
        maxHeaderListSize: options.maxMetadataSize,
      },
      maxSessionMemory: sessionMegabytes(options),
      ...KEEP_WHITESPACE,
    });
    this.#server.on("session", (session) => this.#watch(session));
    // Node's types leave out the last argument.
    const onStream = (
      stream: ServerHttp2Stream,
      headers: IncomingHttpHeaders,
      _flags: number,
      rawHeaders: string[],
    ): void => this.#open(stream, headers[":path"] ?? "", headers["content-type"] ?? "", rawHeaders);
    (this.#server as EventEmitter).on("stream", onStream);
  }

  /** Accepts a connection. */
  accept(socket: Socket): void {
    this.#accepting = socket;
    this.#server.emit("connection", socket);
  }

  /** Ends the present connections after their calls. Their clients then connect again. */
  leave(): void {
    for (const connection of this.#connections.values()) connection.leave();
  }

  /** Resolves when each connection has had a call, and no request is arriving, or after a moment. */
  async settle(): Promise<void> {
    const connections = [...this.#connections.values()];
    await allWithin(
      ARRIVAL_MS,
      connections.map((connection) => connection.settled()),
    );
  }

  /** Sends GOAWAY to the clients, and waits for the calls in flight. */
  async stop(): Promise<void> {
    // A call on its way gets an answer, not a reset.
    await allWithin(FIRST_BYTES_MS, [...this.#silent].map(spoken));
    for (const session of this.#silent) session.destroy();
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  #watch(session: ServerHttp2Session): void {
    this.#connections.set(session, new Connection(session, this.#accepting!, this.options));
    this.#silent.add(session);
    session.once("remoteSettings", () => this.#silent.delete(session));
    session.once("close", () => {
      this.#silent.delete(session);
      this.#connections.delete(session);
    });
    session.on("error", () => session.destroy());
    session.setLocalWindowSize(WINDOW_SIZE);
  }

  #open(stream: ServerHttp2Stream, path: string, contentType: string, rawHeaders: string[]): void {
    stream.on("error", () => {});
    const method = this.#methods.get(path);
    const connection = this.#connections.get(stream.session as ServerHttp2Session);
    if (connection === undefined) return;
    connection.opened(stream);
    if (!contentType.startsWith("application/grpc")) {
      stream.respond({ ":status": 415 }, { endStream: true });
    } else if (method === undefined) {
      const details = `The server does not implement the method ${path}`;
      sendStatus(stream, new RefusedCall(STATUS.UNIMPLEMENTED, details));
    } else {
      const call = new Http2Call(stream, new RawHeaders(rawHeaders), method, connection, this.options);
      serveCall(method, call);
      call.start();
    }
  }
}

/** Resolves when the client has sent something, or the session is over. */
function spoken(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    session.once("remoteSettings", () => resolve());
    session.once("close", resolve);
  });
}

/** Resolves when all have resolved, or after this time. */
async function allWithin(ms: number, all: readonly Promise<void>[]): Promise<void> {
  if (all.length === 0) return;
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([Promise.all(all), over]);
  clearTimeout(timer);
}

const BYTES_PER_MEGABYTE = 1_000_000;

/** Node stores the number in 32 bits. */
const MOST_MEGABYTES = 0xffff_ffff;

/** The memory limit of a session, in Node's unit. */
function sessionMegabytes({ maxSessionMemory }: TransportOptions): number {
  const megabytes = Math.ceil(maxSessionMemory / BYTES_PER_MEGABYTE);
  return Math.min(Math.max(1, megabytes), MOST_MEGABYTES);
}

/** Headers in the received pairs of names and values. Most calls look up one or two. */
class RawHeaders implements CallHeaders {
  constructor(private readonly raw: readonly string[]) {}

  get(wanted: string): string | undefined {
    const raw = this.raw;
    for (let i = 0; i + 1 < raw.length; i += 2) if (raw[i] === wanted && isText(wanted)) return raw[i + 1];
    return undefined;
  }

  *entries(): Iterable<readonly [string, string]> {
    const raw = this.raw;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = raw[i]!;
      if (isText(name) && !TRANSPORT_HEADERS.has(name)) yield [name, raw[i + 1]!];
    }
  }
}

function isText(name: string): boolean {
  return !name.startsWith(":") && !name.endsWith("-bin");
}

/** Headers that belong to the transport, not to the request. */
const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  ...["content-type", "te", "accept-encoding"],
  ...["grpc-timeout", "grpc-encoding", "grpc-accept-encoding"],
]);
