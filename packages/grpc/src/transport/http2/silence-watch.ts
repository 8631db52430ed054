import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** Silence after which a connection is looked at, in milliseconds. It doubles with each ping that is not answered. */
const SILENCE_MS = 10_000;

/** Pings without an answer after which a connection without calls is closed: about 85 minutes. */
const MAX_UNANSWERED = 9;

/** Time that a ping has to be sent, and the client's system to say that nobody is there, in milliseconds. */
const STUCK_MS = 5000;

const NOTHING = new Uint8Array(0);

/** What the watch knows of the connection that it looks at. */
export interface WatchedConnection {
  readonly session: ServerHttp2Session;
  /** The connection itself, which the session does not let go of. */
  readonly socket: Socket;
  /** When the client has sent something for the last time, as `performance.now()`. */
  lastSign(): number;
  hasCalls(): boolean;
  /** Calls `action` after this time unless the session is gone. */
  after(ms: number, action: () => void): void;
}

/**
 * Finds dead sessions. After most errors of the protocol nghttp2 sends GOAWAY and then reads nothing more. Node tells
 * nobody, and does not notice when the client closes the connection: its descriptor would be kept for ever.
 *
 * A connection that falls silent is pinged once. Where the session is dead, the ping stays in the queue. Where only the
 * client is gone, the ping makes its system refuse the connection, and a write of nothing tells. A client that is there
 * need not answer soon: some look at their sockets only during calls.
 */
export class SilenceWatch {
  readonly #connection: WatchedConnection;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #unanswered = 0;

  constructor(connection: WatchedConnection) {
    this.#connection = connection;
    this.#wait(SILENCE_MS);
  }

  /** Destroys the session in a few seconds if it is dead. */
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
