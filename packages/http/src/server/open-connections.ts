import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * How long an idle connection stays open after an answer when the server stops, in milliseconds: the next request may be
 * on its way, and is answered instead of lost.
 */
const LINGER_MS = 50;

/** What is known of a connection. */
interface Connection {
  /**
   * Responses in flight: one at most, unless the client pipelines. A `Set` of those of all connections would live as long
   * as the server and keep responses alive: each table that V8 outgrows holds its entries and the next table, and one of
   * old age is collected seldom.
   */
  readonly responses: ServerResponse[];
  answeredAt: number;
}

/** The connections of a server, and the requests that each of them is busy with. */
export class OpenConnections {
  readonly #connections = new Map<Socket, Connection>();
  /** Connections of a TLS server before they are encrypted, by the address of the client. */
  readonly #handshakes = new Map<string, Socket>();
  #keeps = true;
  #closing = false;
  #ended = false;

  constructor(server: Server, encrypted: boolean) {
    if (encrypted) server.on("connection", (socket: Socket) => this.#watchHandshake(socket));
    server.on(encrypted ? "secureConnection" : "connection", (socket: Socket) => this.#watch(socket));
    server.on("request", ({ socket }, response) => {
      this.#connections.get(socket)?.responses.push(response);
      if (!this.#keeps) response.shouldKeepAlive = false;
      response.once("close", () => this.#answered(socket, response));
    });
  }

  /**
   * Resolves when the requests that have reached this machine by now are answered, and clients that were answered just
   * before have had the time to send the next.
   */
  async settled(): Promise<void> {
    // What lies in the sockets is read when the event loop polls.
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

  /** Each connection ends with its next answer from now on. */
  keepNone(): void {
    this.#keeps = false;
    for (const response of this.#inFlight()) response.shouldKeepAlive = false;
  }

  /** Ends connections on which no request is under way, now and from now on. */
  endIdle(): void {
    this.#closing = true;
    for (const [socket, { responses }] of this.#connections) if (responses.length === 0) socket.destroy();
    for (const socket of this.#handshakes.values()) socket.destroy();
  }

  /** Ends all connections, and those that still come. */
  endAll(): void {
    this.#ended = true;
    for (const socket of this.#connections.keys()) socket.destroy();
    for (const socket of this.#handshakes.values()) socket.destroy();
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
    this.#connections.set(socket, { responses: [], answeredAt: Number.NEGATIVE_INFINITY });
    socket.once("close", () => this.#lose(socket));
    if (this.#ended) socket.destroy();
  }

  /** Answers that wait for those in front of them have no socket yet: Node does not tell them that it is gone. */
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
    // What has been written is sent before the connection ends.
    if (this.#closing && connection.responses.length === 0) socket.destroySoon();
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
