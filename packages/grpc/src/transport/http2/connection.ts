import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { ResolvedConnectionOptions } from "../connection-options.js";
import { PingAbuse } from "./ping-abuse.js";

/** The longest time that a timer can wait. */
const MAX_TIMER_MS = 0x7fff_ffff;

/** The highest id of a stream: a client that is told to go at this one may send what it has begun. */
const LAST_STREAM = 0x7fff_ffff;

/** Looks after one connection: whether its client is still there, its pings, its age. */
export class Connection {
  readonly #session: ServerHttp2Session;
  readonly #options: ResolvedConnectionOptions;
  readonly #abuse: PingAbuse;
  readonly #timers = new Set<NodeJS.Timeout>();
  #calls = 0;
  #pingsWithoutData = 0;
  #lastSign = performance.now();

  constructor(session: ServerHttp2Session, options: ResolvedConnectionOptions) {
    this.#session = session;
    this.#options = options;
    this.#abuse = new PingAbuse(options);
    session.on("ping", () => this.#pinged());
    session.once("close", () => this.#timers.forEach((timer) => void clearTimeout(timer)));
    this.#keepAlive(options.keepaliveTimeMs);
    const { maxConnectionAgeMs } = options;
    if (maxConnectionAgeMs !== undefined) this.#after(jittered(maxConnectionAgeMs), () => this.#retire());
  }

  /** A call has begun. */
  opened(stream: ServerHttp2Stream): void {
    this.#calls++;
    this.received();
    stream.once("close", () => this.#calls--);
  }

  /** The client has sent something. */
  received(): void {
    this.#lastSign = performance.now();
  }

  /** The server has sent headers or data. */
  sent(): void {
    this.#pingsWithoutData = 0;
    this.#abuse.pardon();
  }

  #pinged(): void {
    this.received();
    if (!this.#abuse.isOneTooMany(performance.now(), this.#calls)) return;
    const { NGHTTP2_ENHANCE_YOUR_CALM } = constants;
    this.#session.goaway(NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
    this.#session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM);
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
    if (maxConnectionAgeGraceMs !== undefined)
      this.#after(maxConnectionAgeGraceMs, () => this.#session.destroy());
  }

  #after(ms: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        if (!this.#session.destroyed) action();
      },
      Math.min(ms, MAX_TIMER_MS),
    ).unref();
    this.#timers.add(timer);
    return timer;
  }
}

/** A tenth more or less, so that connections that were opened together do not come back together. */
function jittered(ms: number): number {
  return ms * (0.9 + 0.2 * Math.random());
}
