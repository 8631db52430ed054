import type { EventEmitter } from "node:events";
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { RETRY_PUSHBACK } from "@tritonjs/protocol/grpc";
import type { RequestMemory, RequestShare } from "@tritonjs/server";
import { grpcTimeoutMs } from "@tritonjs/server/internal";
import { type CallStatus, RefusedCall, STATUS, statusOfFailure } from "../status-from-code.js";
import { Connection, type MessageLimit, type TransportOptions } from "./connection.js";
import {
  type Frame,
  FrameReader,
  HEADER_BYTES,
  NO_DATE,
  Outgoing,
  RESPONSE_HEADERS,
  unpackMessage,
} from "./frames.js";
import { type CallHeaders, decodeRequest, type Method, type ServedCall, serveCall } from "./method.js";

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
    stream.on("error", ignore);
    const connection = this.#connections.get(stream.session as ServerHttp2Session);
    if (connection === undefined) return;
    connection.opened();
    const isGrpc = contentType.startsWith("application/grpc");
    const method = isGrpc ? this.#methods.get(path) : undefined;
    const call =
      method && new Http2Call(stream, new RawHeaders(rawHeaders), method, connection, this.options);
    // This event comes once. `on` does not wrap the listener and does not remove it, which takes longer than the event.
    stream.on("close", () => {
      connection.closed(stream);
      call?.closed();
    });
    if (call !== undefined) {
      serveCall(method!, call);
      call.start();
    } else if (isGrpc) {
      const details = `The server does not implement the method ${path}`;
      sendStatus(stream, new RefusedCall(STATUS.UNIMPLEMENTED, details));
    } else stream.respond({ ":status": 415 }, { endStream: true });
  }
}

/** Resolves when the client has sent something, or the session is over. */
function spoken(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    session.once("remoteSettings", () => resolve());
    session.once("close", resolve);
  });
}

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

/** Ends a stream with a status. The client's remaining bytes are read and dropped, so that the stream can close. */
function sendStatus(
  stream: ServerHttp2Stream,
  { code, details, retryAfterMs }: CallStatus,
  further?: OutgoingHttpHeaders,
): void {
  if (stream.closed || stream.destroyed) return;
  const trailers: OutgoingHttpHeaders = { "grpc-status": code, ...further };
  if (details !== "") trailers["grpc-message"] = encodeURI(details);
  if (retryAfterMs !== undefined) trailers[RETRY_PUSHBACK] = String(retryAfterMs);
  if (stream.headersSent) {
    stream.on("wantTrailers", () => {
      if (!stream.closed && !stream.destroyed) stream.sendTrailers(trailers);
    });
    stream.end();
  } else stream.respond({ ...RESPONSE_HEADERS, ...trailers }, { endStream: true, ...NO_DATE });
  if (!stream.readableEnded) stream.resume();
}

const ignore = (): void => {};

/** One call on an HTTP/2 stream: receives and sends messages, and ends with a status. */
class Http2Call implements ServedCall {
  readonly ownsMessages = true;
  readonly #limit: MessageLimit;
  readonly #outgoing: Outgoing;
  readonly #reader: FrameReader;
  /** Messages that have not been delivered yet. */
  readonly #arrived: Frame[] = [];
  readonly #memory: RequestMemory;
  /** Counts these messages, and the one that is still incomplete. */
  readonly #incoming: RequestShare;
  #closeListeners: (() => void)[] = [];
  #onMessage: (message: unknown, share: RequestShare) => void = ignore;
  #onHalfClose: () => void = ignore;
  /** Metadata of the end; undefined for most calls. */
  #trailers: OutgoingHttpHeaders | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #paused = false;
  #unpacking: AbortController | undefined;
  #inputEnded = false;
  #halfClosed = false;
  #over = false;

  constructor(
    private readonly stream: ServerHttp2Stream,
    readonly headers: CallHeaders,
    private readonly method: Method,
    private readonly connection: Connection,
    { messageLimit, requestMemory, inferResponseCompressionLevel }: TransportOptions,
  ) {
    this.#limit = messageLimit;
    this.#reader = new FrameReader(messageLimit);
    this.#memory = requestMemory;
    this.#incoming = requestMemory.share();
    const level = method.protocol === "inference" ? inferResponseCompressionLevel : "none";
    const accepted = level === "none" ? undefined : headers.get("grpc-accept-encoding");
    this.#outgoing = new Outgoing(stream, level, accepted, connection);
    connection.arriving();
  }

  /** The stream is closed. */
  closed(): void {
    if (!this.#inputEnded) this.connection.arrived();
    this.#close();
  }

  get remoteAddress(): string | undefined {
    return this.connection.remoteAddress;
  }

  /** Starts the deadline and the reading. Call it after the listeners are registered. */
  start(): void {
    try {
      const timeout = timeoutOf(this.headers.get("grpc-timeout"));
      // The text that clients also create themselves: either of the two may be first.
      const expire = () => this.fail(new RefusedCall(STATUS.DEADLINE_EXCEEDED, "Deadline Exceeded"));
      if (timeout !== undefined) this.#deadline = setTimeout(expire, timeout);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.stream.on("data", (piece: Buffer) => this.#read(piece));
    this.stream.on("end", () => {
      this.#inputEnded = true;
      this.connection.arrived();
      this.#deliver();
    });
  }

  onMessage(listener: (message: unknown, share: RequestShare) => void): void {
    this.#onMessage = listener;
  }

  onHalfClose(listener: () => void): void {
    this.#onHalfClose = listener;
  }

  onClose(listener: () => void): void {
    if (this.#over) listener();
    else this.#closeListeners.push(listener);
  }

  addTrailer(name: string, value: string | Uint8Array): void {
    this.#trailers ??= {};
    this.#trailers[name] = typeof value === "string" ? value : Buffer.from(value).toString("base64");
  }

  onDrain(listener: () => void): void {
    this.#outgoing.onDrain(listener);
  }

  pause(): void {
    this.#paused = true;
    this.stream.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#deliver();
    if (!this.#paused) this.stream.resume();
  }

  write(message: unknown): boolean {
    return this.#over || this.#outgoing.write(this.method.encode(message));
  }

  end(error?: Error): void {
    if (error === undefined) this.#finish({ code: STATUS.OK, details: "" });
    else this.fail(error);
  }

  fail(error: unknown): void {
    this.#finish(statusOfFailure(error));
  }

  #read(piece: Buffer): void {
    this.connection.received();
    if (this.#over) return;
    try {
      this.#incoming.take(piece.length);
      this.#reader.push(piece, this.#arrived);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#deliver();
  }

  /** Delivers complete messages in order: a message that is being decompressed holds later ones back. */
  #deliver(): void {
    while (!this.#over && !this.#paused && this.#unpacking === undefined) {
      const frame = this.#arrived.shift();
      if (frame === undefined) break;
      const share = this.#incoming.split(HEADER_BYTES + frame.bytes.length);
      if (frame.compressed) this.#unpack(frame.bytes, share);
      else this.#decode(frame.bytes, share);
    }
    if (!this.#inputEnded || this.#halfClosed || this.#unpacking !== undefined) return;
    if (this.#over || this.#arrived.length > 0) return;
    this.#halfClosed = true;
    this.#onHalfClose();
  }

  /** Pauses reading until the message is decompressed: a client could send small messages faster than that. */
  #unpack(bytes: Buffer, share: RequestShare): void {
    const over = new AbortController();
    this.#unpacking = over;
    this.stream.pause();
    const encoding = this.headers.get("grpc-encoding") ?? "identity";
    unpackMessage(bytes, encoding, this.#memory, share, this.#limit, over.signal).then(
      (message) => {
        this.#unpacking = undefined;
        this.#decode(message, share);
        this.#deliver();
        if (!this.#paused && this.#unpacking === undefined) this.stream.resume();
      },
      (error) => {
        share.release();
        this.fail(error);
      },
    );
  }

  #decode(bytes: Buffer, share: RequestShare): void {
    if (this.#over) {
      share.release();
      return;
    }
    let message: unknown;
    try {
      message = decodeRequest(this.method, bytes);
    } catch (error) {
      share.release();
      this.fail(error);
      return;
    }
    this.#onMessage(message, share);
  }

  #finish(status: CallStatus): void {
    if (this.#over) return;
    this.#outgoing.flushed(() => {
      sendStatus(this.stream, status, this.#trailers);
      this.connection.sent();
    });
    this.#close();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#unpacking?.abort();
    this.#incoming.release();
    this.#arrived.length = 0;
    for (const listener of this.#closeListeners) listener();
    this.#closeListeners = [];
    this.#onMessage = ignore;
    this.#onHalfClose = ignore;
  }
}

/**
 * Milliseconds in the header `grpc-timeout`; undefined for no limit, and for a limit beyond the longest timer.
 *
 * @throws RefusedCall INTERNAL for an invalid header.
 */
export function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const milliseconds = grpcTimeoutMs(header);
  if (milliseconds === undefined)
    throw new RefusedCall(STATUS.INTERNAL, `Invalid grpc-timeout value "${header}"`);
  return milliseconds > LONGEST_TIMEOUT_MS ? undefined : milliseconds;
}
