import type { Socket } from "node:net";
import { connectionText, type Endpoint, openSocket } from "../endpoint.js";
import { epochNow } from "../epoch-time.js";
import type { LoadRequest } from "../load-request.js";
import type { HttpAnswers } from "./http-answers.js";
import { HttpResponseReader } from "./response-reader.js";

/** What the carrier learns from its connections. */
export interface ConnectionOwner {
  /** A request has ended. The connection takes the next one if `isFree`. */
  ended(connection: HttpConnection, request: LoadRequest, isFree: boolean): void;
  /** An idle connection has closed. */
  closed(connection: HttpConnection): void;
  received(byteSize: number): void;
}

/** A keep-alive connection, which carries one request at a time. */
export class HttpConnection {
  request: LoadRequest | undefined;
  /** Index in the list of idle connections, or -1. */
  idleIndex = -1;
  readonly #owner: ConnectionOwner;
  readonly #endpoint: Endpoint;
  readonly #socket: Socket;
  readonly #reader: HttpResponseReader;
  readonly #answers: HttpAnswers;
  readonly #onSent: (error?: Error | null) => void;
  #wasConnected = false;

  constructor(owner: ConnectionOwner, endpoint: Endpoint, answers: HttpAnswers) {
    this.#owner = owner;
    this.#endpoint = endpoint;
    this.#answers = answers;
    this.#reader = new HttpResponseReader({
      onHead: (status, head) =>
        this.request !== undefined && answers.begin(this.request, status, head, epochNow()),
      onBody: (bytes) => this.request !== undefined && answers.body(this.request, bytes),
      onEnd: (keepsAlive) => this.#answered(keepsAlive),
    });
    this.#onSent = (error) => {
      if (error == null && this.request !== undefined) this.request.sendEnd = epochNow();
    };
    this.#socket = openSocket(endpoint, {
      onConnect: () => {
        this.#wasConnected = true;
      },
      onBytes: (bytes) => this.#read(bytes),
      onClose: (error) => this.#closed(error),
    });
  }

  /** Sends a request: a prefix of its own, if it has one, and the rest. */
  send(request: LoadRequest, prefix: Buffer | undefined, rest: Buffer): void {
    this.request = request;
    const socket = this.#socket;
    request.sent = epochNow();
    if (prefix === undefined) socket.write(rest, this.#onSent);
    else if (rest.length === 0) socket.write(prefix, this.#onSent);
    else {
      socket.cork();
      socket.write(prefix);
      socket.write(rest, this.#onSent);
      socket.uncork();
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#owner.received(bytes.length);
    try {
      this.#reader.read(bytes);
    } catch (cause) {
      this.#fail(`cannot read the response: ${(cause as Error).message}`, false);
      this.#socket.destroy();
    }
  }

  #answered(keepsAlive: boolean): void {
    const { request } = this;
    if (request === undefined) {
      this.#socket.destroy();
      return;
    }
    this.request = undefined;
    request.end = epochNow();
    this.#answers.end(request);
    if (!keepsAlive) this.#socket.destroy();
    this.#owner.ended(this, request, keepsAlive);
  }

  #closed(error: Error | undefined): void {
    if (this.request !== undefined && error === undefined) this.#reader.closed();
    this.#fail(connectionText(this.#endpoint, this.#wasConnected, error), true);
    this.#owner.closed(this);
  }

  #fail(text: string, isConnectionLost: boolean): void {
    const { request } = this;
    if (request === undefined) return;
    this.request = undefined;
    request.end = epochNow();
    request.fail(text);
    request.isConnectionLost = isConnectionLost;
    this.#owner.ended(this, request, false);
  }
}
