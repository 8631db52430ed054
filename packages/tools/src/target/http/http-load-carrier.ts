import type { EndListener, LoadCarrier } from "../carrier.js";
import type { Endpoint } from "../endpoint.js";
import { epochNow } from "../epoch-time.js";
import type { LoadRequest } from "../load-request.js";
import type { RequestBytes } from "../wire/stamped-requests.js";
import type { HttpAnswers } from "./http-answers.js";
import { HttpConnection } from "./http-connection.js";

/** Parts of an HTTP carrier. */
export interface HttpCarrierParts {
  readonly endpoint: Endpoint;
  readonly requests: RequestBytes;
  /** Makes the reader of a connection. */
  readonly answers: () => HttpAnswers;
  /** Most connections; further requests wait for one. */
  readonly maxConnections: number;
}

/** Sends prepared HTTP requests over keep-alive connections, which it opens when all others are busy. */
export class HttpLoadCarrier implements LoadCarrier {
  bytesSent = 0;
  bytesReceived = 0;
  readonly #parts: HttpCarrierParts;
  readonly #onEnd: EndListener;
  /** The last one was used last, so surplus connections become idle. */
  readonly #idle: HttpConnection[] = [];
  readonly #open = new Set<HttpConnection>();
  readonly #waiting: LoadRequest[] = [];
  #isClosed = false;

  constructor(parts: HttpCarrierParts, onEnd: EndListener) {
    this.#parts = parts;
    this.#onEnd = onEnd;
  }

  send(request: LoadRequest): void {
    const connection = this.#takeIdle() ?? this.#connect();
    if (connection === undefined) this.#waiting.push(request);
    else this.#sendOver(connection, request);
  }

  cancel(request: LoadRequest, text: string): void {
    const waiting = this.#waiting.indexOf(request);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    const connection = request.carried as HttpConnection | undefined;
    if (connection?.request === request) {
      connection.request = undefined;
      this.#open.delete(connection);
      connection.destroy();
    }
    request.carried = undefined;
    request.sent = Number.isNaN(request.sent) ? epochNow() : request.sent;
    request.end = epochNow();
    request.fail(text);
    this.#onEnd(request);
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    for (const connection of this.#open) {
      connection.request = undefined;
      connection.destroy();
    }
    this.#open.clear();
  }

  ended(connection: HttpConnection, request: LoadRequest, isFree: boolean): void {
    request.carried = undefined;
    if (!isFree) this.#open.delete(connection);
    const next = this.#waiting.shift();
    if (next !== undefined) {
      const free = isFree ? connection : this.#connect();
      if (free === undefined) this.#waiting.unshift(next);
      else this.#sendOver(free, next);
    } else if (isFree) {
      connection.idleIndex = this.#idle.push(connection) - 1;
    }
    this.#onEnd(request);
  }

  closed(connection: HttpConnection): void {
    this.#open.delete(connection);
    if (connection.idleIndex < 0) return;
    const last = this.#idle.pop()!;
    if (last !== connection) {
      this.#idle[connection.idleIndex] = last;
      last.idleIndex = connection.idleIndex;
    }
    connection.idleIndex = -1;
  }

  received(byteSize: number): void {
    this.bytesReceived += byteSize;
  }

  #takeIdle(): HttpConnection | undefined {
    const connection = this.#idle.pop();
    if (connection !== undefined) connection.idleIndex = -1;
    return connection;
  }

  #connect(): HttpConnection | undefined {
    if (this.#isClosed || this.#open.size >= this.#parts.maxConnections) return undefined;
    const connection = new HttpConnection(this, this.#parts.endpoint, this.#parts.answers());
    this.#open.add(connection);
    return connection;
  }

  #sendOver(connection: HttpConnection, request: LoadRequest): void {
    const { requests } = this.#parts;
    requests.stamp(request);
    const { prefix, rest } = requests;
    this.bytesSent += rest.length + (prefix?.length ?? 0);
    request.carried = connection;
    connection.send(request, prefix, rest);
  }
}
