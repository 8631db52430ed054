import type { Endpoint } from "../endpoint.js";
import type { HeaderBlocks } from "../http2/hpack.js";
import { Http2Session } from "../http2/http2-session.js";

/** Calls in flight on a connection before a further one is opened. */
const CALLS_PER_CONNECTION = 8;

/** The connections of a carrier. */
export class SessionPool {
  readonly #endpoint: Endpoint;
  readonly #blocks: HeaderBlocks;
  readonly #maxConnections: number;
  readonly #sessions: Http2Session[] = [];
  #closedSent = 0;
  #closedReceived = 0;

  constructor(endpoint: Endpoint, blocks: HeaderBlocks, maxConnections: number) {
    this.#endpoint = endpoint;
    this.#blocks = blocks;
    this.#maxConnections = maxConnections;
  }

  get bytesSent(): number {
    return this.#sessions.reduce((sum, { bytesSent }) => sum + bytesSent, this.#closedSent);
  }

  get bytesReceived(): number {
    return this.#sessions.reduce((sum, { bytesReceived }) => sum + bytesReceived, this.#closedReceived);
  }

  /** A connection for a call; undefined when all have as many calls as their servers permit. */
  take(): Http2Session | undefined {
    let least: Http2Session | undefined;
    for (const session of this.#sessions) {
      if (!session.hasRoom) continue;
      if (session.openCalls < CALLS_PER_CONNECTION) return session;
      if (least === undefined || session.openCalls < least.openCalls) least = session;
    }
    return this.#sessions.length < this.#maxConnections ? this.#open() : least;
  }

  close(): void {
    for (const session of this.#sessions.splice(0)) session.destroy();
  }

  #open(): Http2Session {
    const session: Http2Session = new Http2Session(this.#endpoint, this.#blocks, () => this.#remove(session));
    this.#sessions.push(session);
    return session;
  }

  #remove(session: Http2Session): void {
    const index = this.#sessions.indexOf(session);
    if (index < 0) return;
    this.#sessions.splice(index, 1);
    this.#closedSent += session.bytesSent;
    this.#closedReceived += session.bytesReceived;
  }
}
