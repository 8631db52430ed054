import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { pipeline, Readable } from "node:stream";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import type { RequestShare } from "@tritonjs/server";
import { freeMemory, freeWhenSent } from "@tritonjs/server/internal";
import { BodyBuffer, ClientGone, firstHeader, latin1Text, type V2Request } from "../exchange/request.js";
import { byteLength, isWhole, type V2Response } from "../exchange/response.js";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";
import type { V2Handler } from "../routes/v2-handler.js";

/** A request that a Node server received. Its body has not been read yet. */
export class NodeV2Request implements V2Request {
  readonly ownsBody = true;
  readonly method: string;
  readonly path: string;
  readonly rawHeaders: readonly string[];

  /** @param prefix prefix of all paths */
  constructor(
    private readonly incoming: IncomingMessage,
    private readonly outgoing: ServerResponse,
    prefix: string,
  ) {
    this.method = incoming.method ?? "";
    this.path = pathOf(incoming.url ?? "", prefix);
    this.rawHeaders = incoming.rawHeaders;
  }

  get scheme(): "http" | "https" {
    return "encrypted" in this.incoming.socket ? "https" : "http";
  }

  get remoteAddress(): string | undefined {
    return this.incoming.socket.remoteAddress;
  }

  /** An application sets it before it calls the routes; a server of ours never does. */
  get grantedOrigin(): string | undefined {
    return this.outgoing.getHeader("access-control-allow-origin")?.toString();
  }

  get gone(): boolean {
    return this.outgoing.destroyed;
  }

  header(name: string): string | undefined {
    return firstHeader(this, name);
  }

  readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array> {
    return readMessage(this.incoming, memory, maxInputSize, tensorsAt);
  }

  onGone(listener: () => void): () => void {
    // Most requests are answered. A listener without effect costs less than removing it.
    let waiting = true;
    this.outgoing.on("close", () => {
      if (waiting) listener();
    });
    return () => {
      waiting = false;
    };
  }

  onSent(listener: () => void): void {
    if (this.gone) listener();
    else this.outgoing.once("close", listener);
  }

  /** A server without a logger has no place for reports. */
  report(_error: unknown): void {}
}

function pathOf(url: string, prefix: string): string {
  const query = url.indexOf("?");
  let path = query < 0 ? url : url.slice(0, query);
  // Proxies may put the server's name into the path.
  if (path[0] !== "/") path = path.replace(/^https?:\/\/[^/]*/i, "");
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

const NO_BYTES = new Uint8Array(0);

/** Bytes of a chunk from which freeing it costs less than leaving it to the garbage collector. */
const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Reads the body of a message of Node. After a body is rejected, its remaining bytes are read and dropped, so that the
 * connection can be used again.
 *
 * @param memory share that counts the body as it arrives
 * @throws TritonError INVALID_ARG for a body over the limit, UNAVAILABLE for a body over the memory budget, ClientGone
 * when the client leaves.
 */
export function readMessage(
  message: IncomingMessage,
  memory: RequestShare,
  maxInputSize: number,
  tensorsAt: number | undefined,
): Promise<Uint8Array> {
  const header = message.headers["content-length"];
  const declared = header === undefined ? undefined : Number(header);
  if (declared === 0 || message.readableEnded) return Promise.resolve(NO_BYTES);
  if (message.destroyed) return Promise.reject(new ClientGone());
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(maxInputSize, declared, tensorsAt);
    if (declared !== undefined) memory.expect(declared);
    let settled = false;
    const fail = (error: unknown): void => {
      settled = true;
      message.resume();
      reject(error);
    };
    message.on("data", (chunk: Buffer) => {
      if (settled) return;
      try {
        memory.take(chunk.length);
        body.add(chunk, true);
        if (isOurs(chunk, message)) freeMemory(chunk.buffer as ArrayBuffer);
      } catch (thrown) {
        fail(thrown);
      }
    });
    message.on("end", () => {
      settled = true;
      resolve(body.bytes());
    });
    const leave = (cause?: unknown): void => {
      if (!settled) fail(new ClientGone(cause));
    };
    message.on("error", leave);
    message.on("close", leave);
  });
}

/** True for a chunk with memory of its own, as node:http makes it, that no other listener sees. The body has a copy. */
function isOurs({ length, buffer }: Buffer, message: IncomingMessage): boolean {
  return length >= WORTH_FREEING_BYTES && buffer.byteLength === length && message.listenerCount("data") === 1;
}

export function answerDirectly(handler: V2Handler): RequestListener {
  return async (incoming, outgoing) => {
    try {
      const response = await handler(new NodeV2Request(incoming, outgoing, ""));
      if (response !== undefined) sendAnswer(outgoing, response);
    } catch (error) {
      outgoing.destroy(error as Error);
    }
  };
}

/** Bytes up to which a body is sent in one piece with its headers. */
const MAX_TEXT = 4096;

/** False in Bun 1.4, which may never send what is written between `cork` and `end`. */
const joinsWrites = process.versions.bun === undefined;

/** Sends an answer with one system call, unless parts of it are still to come. */
function sendAnswer(outgoing: ServerResponse, { status, headers, body }: V2Response): void {
  const lines: string[] = [];
  for (const name in headers) lines.push(name, headers[name]!);
  if (!(body instanceof Uint8Array) && !isWhole(body)) {
    outgoing.writeHead(status, lines);
    // If the client leaves, the body ends. If the body breaks off, the connection ends.
    pipeline(Readable.from(body, { objectMode: false }), outgoing, () => {});
    return;
  }
  const pieces = isWhole(body) ? body : [body];
  const length = byteLength(pieces);
  lines.push("content-length", String(length));
  outgoing.writeHead(status, lines);
  if (length <= MAX_TEXT) {
    outgoing.end(latin1(pieces), "latin1");
  } else {
    if (joinsWrites) outgoing.cork();
    for (const piece of pieces) outgoing.write(piece, freeWhenSent(piece));
    outgoing.end();
  }
}

/** Pieces as text in which each character is a byte: Node appends text to the headers, and sends both in one piece. */
function latin1(pieces: readonly Uint8Array[]): string {
  let text = "";
  for (const piece of pieces) text += latin1Text(piece);
  return text;
}

/**
 * Milliseconds that an idle connection stays open after an answer while the server stops. A request that is already on
 * its way is then answered instead of lost.
 */
const LINGER_MS = 50;

/** Longest interval between checks for clients that do not read, in milliseconds. */
const MAX_CHECK_INTERVAL_MS = 30_000;

interface Connection {
  /**
   * Responses in flight: at most one, unless the client pipelines. They are not in one `Set` for all connections, which
   * would live as long as the server and keep responses alive. Each table that V8 outgrows holds its entries and the
   * next table, and an old table is seldom collected.
   */
  readonly responses: ServerResponse[];
  answeredAt: number;
  /** The last answered request, if its body had not arrived in full by then. */
  unread: IncomingMessage | undefined;
  /** Whether the connection was ended, and only waits for its client. */
  lingers: boolean;
  /** Whether the client sent bytes that could not be parsed. The parser reports an error for each further piece. */
  isUnreadable: boolean;
}

/** The connections of a server, and the requests in flight on each. */
export class OpenConnections {
  readonly #connections = new Map<Socket, Connection>();
  /** Connections of a TLS server before they are encrypted, by the address of the client. */
  readonly #handshakes = new Map<string, Socket>();
  #keeps = true;
  #closing = false;
  #ended = false;

  /**
   * @param sendTimeoutMs milliseconds in which a client must read some of its answer; 0 for no limit
   */
  constructor(server: Server, encrypted: boolean, sendTimeoutMs: number) {
    if (sendTimeoutMs > 0) {
      const timeoutMs = Math.min(sendTimeoutMs, LONGEST_TIMEOUT_MS);
      const everyMs = Math.min(MAX_CHECK_INTERVAL_MS, Math.ceil(timeoutMs / 2));
      const check = setInterval(() => this.#watchUnread(timeoutMs), everyMs).unref();
      server.once("close", () => clearInterval(check));
    }
    server.on("timeout", (socket: Socket) => this.#timeOut(socket));
    if (encrypted) server.on("connection", (socket: Socket) => this.#watchHandshake(socket));
    server.on(encrypted ? "secureConnection" : "connection", (socket: Socket) => this.#watch(socket));
    server.on("request", ({ socket }, response) => {
      this.#connections.get(socket)?.responses.push(response);
      if (!this.#keeps) response.shouldKeepAlive = false;
      response.once("close", () => this.#answered(socket, response));
    });
  }

  /**
   * Resolves when all requests that have reached this machine by now are answered. Clients with a recent answer get
   * time to send the next request first.
   */
  async settled(): Promise<void> {
    // The event loop reads waiting bytes from the sockets when it polls.
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
    const since = performance.now() - LINGER_MS;
    const recent = [...this.#connections.values()].some(
      ({ responses, answeredAt }) => responses.length === 0 && answeredAt > since,
    );
    const answers = this.#inFlight().map(
      (response) => new Promise((resolve) => response.once("close", resolve)),
    );
    if (recent) answers.push(new Promise((resolve) => setTimeout(resolve, LINGER_MS)));
    await Promise.all(answers);
  }

  /** From now on, each connection ends after its next answer. */
  keepNone(): void {
    this.#keeps = false;
    for (const response of this.#inFlight()) response.shouldKeepAlive = false;
  }

  /** Ends connections without a request in flight, now and from now on. */
  endIdle(): void {
    this.#closing = true;
    for (const [socket, connection] of this.#connections) {
      if (connection.responses.length > 0 || connection.lingers) continue;
      if (isSending(connection)) this.#end(socket, connection);
      else socket.destroy();
    }
    for (const socket of this.#handshakes.values()) socket.destroy();
  }

  /** Ends all connections, and new ones as they come. */
  endAll(): void {
    this.#ended = true;
    for (const socket of this.#connections.keys()) socket.destroy();
    for (const socket of this.#handshakes.values()) socket.destroy();
  }

  /**
   * Calls a function once the earlier requests of a connection are answered. For a request that could not be parsed.
   *
   * @param answer gets whether a part of an answer to that request was sent already, so that no other can follow
   */
  afterAnswers(socket: Socket, answer: (hasBegun: boolean) => void): void {
    const connection = this.#connections.get(socket);
    if (connection?.isUnreadable) return;
    if (connection !== undefined) connection.isUnreadable = true;
    const responses = connection?.responses ?? [];
    const end = () => answer(responses.some(({ headersSent }) => headersSent));
    const before = responses.findLast(({ req }) => req.complete);
    if (before === undefined) end();
    else {
      before.once("close", end);
      // Bytes that still arrive would restart the time in which the client must read. So a client that leaves now is
      // noticed only when its answers are sent.
      socket.pause();
    }
  }

  /**
   * Ends the connections of clients that read nothing of their answers for this time. Only sockets that still hold bytes
   * at a check get a timer, so other requests cost nothing. Node's timer starts anew when a part of the bytes is sent.
   */
  #watchUnread(timeoutMs: number): void {
    for (const [socket, connection] of this.#connections) {
      const [response] = connection.responses;
      if (response === undefined || socket.writableLength === 0 || socket.timeout === timeoutMs) continue;
      response.on("timeout", () => {
        if (socket.writableLength > 0) socket.destroy();
      });
      socket.setTimeout(timeoutMs);
    }
  }

  /**
   * Ends a connection that was idle for too long. After a suspension or a long turn of the event loop, timers run before
   * sockets are read. A request that waits there is read and answered instead.
   */
  #timeOut(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.responses.length > 0) return;
    const { bytesRead } = socket;
    setImmediate(() =>
      setImmediate(() => {
        if (socket.bytesRead === bytesRead) socket.destroy();
      }),
    );
  }

  #inFlight(): ServerResponse[] {
    return [...this.#connections.values()].flatMap(({ responses }) => responses);
  }

  #watchHandshake(socket: Socket): void {
    const client = addressOf(socket);
    this.#handshakes.set(client, socket);
    socket.once("close", () => this.#handshakes.delete(client));
    if (this.#ended) socket.destroy();
  }

  #watch(socket: Socket): void {
    this.#handshakes.delete(addressOf(socket));
    const connection: Connection = {
      responses: [],
      answeredAt: Number.NEGATIVE_INFINITY,
      unread: undefined,
      lingers: false,
      isUnreadable: false,
    };
    this.#connections.set(socket, connection);
    // Node calls this after an answer with `Connection: close`, whether or not the whole request has arrived.
    socket.destroySoon = () => this.#end(socket, connection);
    socket.once("close", () => this.#lose(socket));
    if (this.#ended) socket.destroy();
  }

  /** Pipelined answers that wait for earlier ones have no socket yet, so Node does not tell them that it is closed. */
  #lose(socket: Socket): void {
    const responses = this.#connections.get(socket)?.responses ?? [];
    this.#connections.delete(socket);
    for (const response of responses) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit("close");
    }
  }

  #answered(socket: Socket, response: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    connection.responses.splice(connection.responses.indexOf(response), 1);
    connection.answeredAt = performance.now();
    connection.unread = response.req.complete ? undefined : response.req;
    if (this.#closing && connection.responses.length === 0) socket.destroySoon();
  }

  /** Ends a connection after its written bytes. A client that is still sending gets time to finish and read them. */
  #end(socket: Socket, connection: Connection): void {
    if (connection.lingers) return;
    connection.lingers = isSending(connection);
    if (connection.lingers) lingeringClose(socket);
    else Socket.prototype.destroySoon.call(socket);
  }
}

function isSending({ responses, unread }: Connection): boolean {
  return unread?.complete === false || responses.some(({ req }) => !req.complete);
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Milliseconds without a byte after which the client is taken to be gone. Apache's limit. */
const SILENCE_MS = 2000;
/** Milliseconds in which the client must finish, however fast it sends. The limit of nginx and Apache. */
const LONGEST_MS = 30_000;
/** Bytes that are read and dropped: twice the default limit on a tensor. */
const MAX_BYTES = 128 * 1024 * 1024;

/**
 * Ends a connection whose client may still be sending. Written bytes are sent, and then the end of the connection.
 * Further bytes of the client are read and dropped, unparsed, until the client ends the connection too or reaches a
 * limit. Closing at once would reset the connection: the client's writes then fail, and the answer is lost.
 */
function lingeringClose(socket: Socket): void {
  socket.end();
  socket.setTimeout(SILENCE_MS, () => socket.destroy());
  const limit = setTimeout(() => socket.destroy(), LONGEST_MS);
  socket.once("end", () => socket.destroy());
  socket.once("close", () => clearTimeout(limit));
  // Node's HTTP parser restarts a socket that it paused when the socket resumes. Without the parser, nothing does.
  if (socket.isPaused()) socket.resume().once("resume", () => drop(socket));
  else drop(socket);
}

/** Reads instead of Node's HTTP parser, which gives up a socket with a further listener for its data. */
function drop(socket: Socket): void {
  const parsers = socket.listeners("data") as (() => void)[];
  let left = MAX_BYTES;
  socket.on("data", ({ length }: Buffer) => {
    left -= length;
    if (left < 0) socket.destroy();
  });
  for (const parser of parsers) socket.off("data", parser);
}

/** Faults that Node's parser finds in the head of a request, and their answers. */
const answers: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_INVALID_METHOD: ["405 Method Not Allowed", "Method Not Allowed"],
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "Request Timeout"],
};

/** Makes the body of the answer to a request that could not be parsed. */
export type ClientErrorBody = (message: string) => PlainJson;

/**
 * Answers a request that could not be parsed, and closes its connection.
 *
 * @param hasBegun whether a part of another answer to the request was sent already; then only the connection ends
 */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  hasBegun: boolean,
  bodyOf: ClientErrorBody = (error) => ({ error }),
): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  if (!hasBegun) socket.write(answerTo(error, bodyOf));
  lingeringClose(socket);
}

function answerTo(error: NodeJS.ErrnoException, bodyOf: ClientErrorBody): string {
  const [status, message] = answers[error.code ?? ""] ?? ["400 Bad Request", "Bad Request"];
  const body = toJsonBytes(bodyOf(message));
  return (
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
    `Connection: close\r\n\r\n${body}`
  );
}
