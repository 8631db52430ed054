import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** Milliseconds of silence after which a connection is checked. They double with each unanswered ping. */
const SILENCE_MS = 10_000;

/** Unanswered pings after which a connection without calls is closed: about 85 minutes. */
const MAX_UNANSWERED = 9;

/** Milliseconds for a ping to be sent, and for the client's system to report that the connection is gone. */
const STUCK_MS = 5000;

const NOTHING = new Uint8Array(0);

/** The part of a connection that the watch uses. */
export interface WatchedConnection {
  readonly session: ServerHttp2Session;
  /** The connection itself, which the session does not release. */
  readonly socket: Socket;
  /** When the client last sent something, as `performance.now()`. */
  lastSign(): number;
  hasCalls(): boolean;
  /** Calls `action` after this time, unless the session is destroyed by then. */
  after(ms: number, action: () => void): void;
}

/**
 * Finds dead sessions. After most protocol errors, nghttp2 sends GOAWAY and then stops reading. Node does not report
 * this, and does not notice when the client closes the connection. Its descriptor would stay open for ever.
 *
 * A silent connection is pinged once. If the session is dead, the ping stays in the queue. If only the client is gone,
 * the ping makes its system reset the connection, and an empty write reveals that. A live client need not answer soon:
 * some clients read their sockets only during calls.
 */
export class SilenceWatch {
  readonly #connection: WatchedConnection;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #unanswered = 0;

  constructor(connection: WatchedConnection) {
    this.#connection = connection;
    this.#wait(SILENCE_MS);
  }

  /** Checks the session. Destroys it after a few seconds if it is dead. */
  look(): void {
    const { session, socket, after } = this.#connection;
    this.#lookedAt = performance.now();
    this.#unanswered++;
    session.ping((error) => {
      if (error === null) this.#unanswered = 0;
    });
    const { bytesWritten } = socket;
    after(STUCK_MS, () => {
      if (this.#unanswered === 0) return;
      const queued = session.state.outboundQueueSize ?? 0;
      if (queued > 0 && socket.bytesWritten === bytesWritten) session.destroy();
      else if (socket.writable) socket.write(NOTHING);
    });
  }

  #wait(ms: number): void {
    const { session, lastSign, hasCalls, after } = this.#connection;
    after(ms, () => {
      const sign = lastSign();
      const silentMs = performance.now() - sign;
      if (sign > this.#lookedAt) this.#unanswered = 0;
      if (silentMs < SILENCE_MS) return this.#wait(SILENCE_MS - silentMs);
      if (this.#unanswered >= MAX_UNANSWERED && !hasCalls()) return void session.destroy();
      if (this.#unanswered > 0 || sign > this.#lookedAt) this.look();
      this.#wait(SILENCE_MS * 2 ** Math.min(this.#unanswered, MAX_UNANSWERED));
    });
  }
}
