import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { PingAbuse, ResetAbuse } from "./client-abuse.js";
import type { ResolvedConnectionOptions } from "./connection-options.js";
import { SilenceWatch } from "./silence-watch.js";

/** The highest stream id. A GOAWAY with this id lets the client send the calls that it has begun. */
const LAST_STREAM = 0x7fff_ffff;

/** Manages one connection: keepalive, the client's pings and resets, and its age. */
export class Connection {
  readonly remoteAddress: string | undefined;
  readonly #session: ServerHttp2Session;
  readonly #socket: Socket;
  readonly #options: ResolvedConnectionOptions;
  readonly #pings: PingAbuse;
  readonly #resets = new ResetAbuse();
  readonly #silence: SilenceWatch;
  readonly #timers = new Set<NodeJS.Timeout>();
  #isCutOff = false;
  #calls = 0;
  #pingsWithoutData = 0;
  #lastSign = performance.now();

  constructor(session: ServerHttp2Session, socket: Socket, options: ResolvedConnectionOptions) {
    this.#session = session;
    this.#socket = socket;
    this.#options = options;
    this.remoteAddress = socket.remoteAddress;
    this.#pings = new PingAbuse(options);
    this.#silence = new SilenceWatch({
      session,
      socket,
      lastSign: () => this.#lastSign,
      hasCalls: () => this.#calls > 0,
      after: (ms, action) => this.#after(ms, action),
    });
    session.on("ping", () => this.#pinged());
    session.once("close", () => this.#timers.forEach((timer) => void clearTimeout(timer)));
    this.#keepAlive(options.keepaliveTimeMs);
    const { maxConnectionAgeMs } = options;
    if (maxConnectionAgeMs !== undefined) this.#after(jittered(maxConnectionAgeMs), () => this.#retire());
  }

  /** Notes that a call has begun. */
  opened(stream: ServerHttp2Stream): void {
    this.#calls++;
    this.received();
    stream.on("close", () => {
      this.#calls--;
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted) this.#reset();
    });
  }

  /** Notes that the client has sent something. */
  received(): void {
    this.#lastSign = performance.now();
  }

  /** Notes that the server has sent headers or data. */
  sent(): void {
    this.#pingsWithoutData = 0;
    this.#pings.pardon();
  }

  /** Sends GOAWAY. Calls that the client has begun by then are still accepted. */
  leave(): void {
    if (!this.#session.destroyed) this.#session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM);
  }

  /** Sends GOAWAY. Resolves when the calls in flight are over, or can no longer be answered. */
  close(): Promise<void> {
    const session = this.#session;
    if (session.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      session.once("close", resolve);
      this.#silence.look();
      session.close();
    });
  }

  #pinged(): void {
    this.received();
    if (this.#pings.isOneTooMany(performance.now(), this.#calls)) this.#cutOff("too_many_pings");
  }

  #reset(): void {
    if (!this.#session.destroyed && this.#resets.isOneTooMany(performance.now()))
      this.#cutOff("too_many_resets");
  }

  #cutOff(reason: string): void {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from(reason));
    this.#session.destroy();
  }

  #keepAlive(waitMs: number): void {
    this.#after(waitMs, () => {
      const { keepaliveTimeMs } = this.#options;
      const silentMs = performance.now() - this.#lastSign;
      if (silentMs < keepaliveTimeMs) this.#keepAlive(keepaliveTimeMs - silentMs);
      else this.#ping();
    });
  }

  #ping(): void {
    const { keepaliveTimeMs, keepaliveTimeoutMs, keepalivePermitWithoutCalls, http2MaxPingsWithoutData } =
      this.#options;
    const wanted = this.#calls > 0 || keepalivePermitWithoutCalls;
    const allowed = http2MaxPingsWithoutData === 0 || this.#pingsWithoutData < http2MaxPingsWithoutData;
    if (wanted && allowed) {
      this.#pingsWithoutData++;
      const timeout = this.#after(keepaliveTimeoutMs, () => this.#session.destroy());
      this.#session.ping(() => {
        clearTimeout(timeout);
        this.#timers.delete(timeout);
        this.received();
      });
    }
    this.#keepAlive(keepaliveTimeMs);
  }

  #retire(): void {
    const { maxConnectionAgeGraceMs } = this.#options;
    this.#session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM, Buffer.from("max_age"));
    this.#session.close();
    if (maxConnectionAgeGraceMs === undefined) return;
    this.#after(maxConnectionAgeGraceMs, () => {
      this.#session.destroy();
      // The client may have stopped reading since it got the GOAWAY.
      setImmediate(() => this.#socket.destroy());
    });
  }

  #after(ms: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        if (!this.#session.destroyed) action();
      },
      Math.min(ms, LONGEST_TIMEOUT_MS),
    ).unref();
    this.#timers.add(timer);
    return timer;
  }
}

/** Adds or subtracts up to a tenth, so that connections that were opened together do not reconnect together. */
function jittered(ms: number): number {
  return ms * (0.9 + 0.2 * Math.random());
}
