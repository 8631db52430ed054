import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { createSecureContext, createServer } from "node:tls";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { type RequestMemory, resolveTls, type TlsOptions } from "@tritonjs/server";

/** Milliseconds of silence after which a client is pinged. They double with each unanswered ping. */
const SILENCE_MS = 10_000;

/** Milliseconds between pings of a silent client that answers them, and between two looks at it. */
const IDLE_PING_MS = 600_000;
const IDLE_LOOK_MS = 60_000;

/** Unanswered pings after which a client that takes nothing is given up: about 85 minutes. */
const MAX_UNANSWERED = 8;

/** Milliseconds after GOAWAY in which most calls end. */
const CLOSE_PROBE_MS = 1000;

/** Milliseconds that a session has to pass a ping to the system. */
const STUCK_MS = 5000;

/** Bytes that the system takes from a session although the client reads nothing. */
const ALWAYS_TAKEN_BYTES = 16 * 1024;

/** Bytes of frames around a message: headers, trailers and the frames' own headers. */
const FRAME_BYTES = 256;

/**
 * Manages one connection: keepalive, the client's pings and resets, the age, and the end of the session.
 *
 * The socket belongs to the session. Nothing here reads from it or writes to it, since Node aborts the process when a
 * write ends that the session did not begin. All that is known about the client comes from the session's public
 * interface: frames that arrive, answered pings, completed writes and the window that the client grants.
 *
 * ```
 *  the client is silent for 10 s ──> ping ──┬── answered: the next ping comes after 10 minutes
 *                                           ├── still queued although little is unread: the session is dead, destroy it
 *                                           └── no answer: ping again after 20, 40, 80 s ..; after 85 minutes in which
 *                                               the client took and sent nothing, destroy the session
 * ```
 *
 * A session is dead after most protocol errors: nghttp2 sends GOAWAY and then stops reading. Node does not report this,
 * and does not notice when the client closes the connection, so its descriptor would stay open for ever. A live client
 * may read as slowly as it likes.
 */
export class Connection {
  readonly remoteAddress: string | undefined;
  readonly #pings: PingAbuse;
  readonly #resets = new ResetAbuse();
  readonly #timers = new Set<NodeJS.Timeout>();
  #isCutOff = false;
  #calls = 0;
  #isLeaving = false;
  #isEnding = false;
  #hasHadCall = false;
  /** Calls whose requests have not arrived in full. */
  #arriving = 0;
  #onArrived: (() => void) | undefined;
  #pingsWithoutData = 0;
  #lastSign = performance.now();
  /** When the client answered the last ping of a silent connection. */
  #lastAnswer = Number.NEGATIVE_INFINITY;
  #unanswered = 0;
  /** Writes that Node has not passed to the system yet, and the number of those that it has. */
  #pendingWrites = 0;
  #writes = 0;
  /** Bytes sent so far, and those of them that the client has read, as its answer to a later ping shows. */
  #sentBytes = 0;
  #readBytes = 0;
  /** Completed writes and the client's window when the client was last checked for progress. */
  #seen = { writes: 0, window: 0 };

  constructor(
    private readonly session: ServerHttp2Session,
    private readonly socket: Socket,
    private readonly options: ResolvedConnectionOptions,
  ) {
    this.remoteAddress = socket.remoteAddress;
    this.#pings = new PingAbuse(options);
    this.#destroyBetweenReads();
    session.on("ping", () => this.#pinged());
    session.once("close", () => this.#timers.forEach((timer) => void clearTimeout(timer)));
    this.#lookAfter(SILENCE_MS);
    this.#keepAlive(options.keepaliveTimeMs);
    const { maxConnectionAgeMs } = options;
    if (maxConnectionAgeMs !== undefined) this.#after(jittered(maxConnectionAgeMs), () => this.#retire());
  }

  /** Notes a new call. `closed` is called at its end. */
  opened(): void {
    this.#calls++;
    this.#hasHadCall = true;
    this.received();
    // Calls that have arrived together with this one are served too.
    if (this.#isLeaving) setImmediate(() => this.#endAfterCalls());
  }

  closed(stream: ServerHttp2Stream): void {
    this.#calls--;
    if (this.#isEnding && this.#calls === 0) this.session.close();
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted) this.#reset();
  }

  received(): void {
    this.#lastSign = performance.now();
  }

  /** Notes that the server has sent headers, a message or trailers. */
  sent(): void {
    this.#sentBytes += FRAME_BYTES;
    this.#pingsWithoutData = 0;
    this.#pings.pardon();
  }

  /** Notes a write of this many bytes. Its callback is `written`. */
  writing(bytes: number): void {
    this.#sentBytes += bytes;
    this.#pendingWrites++;
  }

  /** Notes that Node has passed a write to the system, or has dropped it with its stream. */
  readonly written = (): void => {
    this.#pendingWrites--;
    this.#writes++;
  };

  /**
   * Ends the connection after its calls: those in flight, or else the next one. GOAWAY names the last call that the
   * server has begun. The client repeats later ones over another connection. A proxy that sends one call at a time, and
   * cannot repeat it, loses none.
   *
   * A GOAWAY that permits later calls is not possible with Node: nghttp2 ignores them all the same, and they hang.
   */
  leave(): void {
    this.#isLeaving = true;
    if (this.#calls > 0) this.#endAfterCalls();
  }

  /** Notes a call whose request arrives, until `arrived` is called. */
  arriving(): void {
    this.#arriving++;
  }

  /** Notes that all of a call's request has arrived, or that the call is over. */
  arrived(): void {
    this.#arriving--;
    if (this.#arriving === 0) this.#onArrived?.();
  }

  /** Resolves when the client has made a call, and all calls have arrived in full, or when the session is over. */
  settled(): Promise<void> {
    if (this.session.destroyed || (this.#hasHadCall && this.#arriving === 0)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onArrived = resolve;
      this.session.once("close", resolve);
    });
  }

  /** Sends GOAWAY. Resolves when the calls in flight are over, or can no longer be answered. */
  close(): Promise<void> {
    const session = this.session;
    if (session.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      session.once("close", resolve);
      this.#endAfterCalls();
      // Not at once: nginx fails a call whose trailers come in one piece with a ping.
      this.#after(CLOSE_PROBE_MS, () => this.#probe());
    });
  }

  /** Sends GOAWAY, and ends the session when its calls are over. A closed session does not show whether it is dead. */
  #endAfterCalls(reason?: string): void {
    if (this.#isEnding || this.session.destroyed) return;
    this.#isEnding = true;
    const data = reason === undefined ? undefined : Buffer.from(reason);
    this.session.goaway(constants.NGHTTP2_NO_ERROR, 0, data);
    if (this.#calls === 0) this.session.close();
  }

  #pinged(): void {
    this.received();
    if (this.#pings.isOneTooMany(performance.now(), this.#calls)) this.#cutOff("too_many_pings");
  }

  #reset(): void {
    if (!this.session.destroyed && this.#resets.isOneTooMany(performance.now()))
      this.#cutOff("too_many_resets");
  }

  #cutOff(reason: string): void {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    this.session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from(reason));
    this.session.destroy();
  }

  #retire(): void {
    const { maxConnectionAgeGraceMs } = this.options;
    this.#endAfterCalls("max_age");
    if (maxConnectionAgeGraceMs !== undefined)
      this.#after(maxConnectionAgeGraceMs, () => this.session.destroy());
  }

  #lookAfter(ms: number): void {
    this.#after(ms, () => this.#look());
  }

  /** Pings a silent client, or gives it up. */
  #look(): void {
    const silentMs = performance.now() - this.#lastSign;
    if (silentMs < SILENCE_MS) {
      this.#unanswered = 0;
      this.#lookAfter(SILENCE_MS - silentMs);
    } else if (this.#lastSign <= this.#lastAnswer && silentMs < IDLE_PING_MS) {
      this.#lookAfter(IDLE_LOOK_MS);
    } else {
      if (this.#hasProgressed()) this.#unanswered = 0;
      if (this.#unanswered < MAX_UNANSWERED) {
        this.#probe();
        this.#lookAfter(SILENCE_MS * 2 ** this.#unanswered);
      } else this.session.destroy();
    }
  }

  /** Pings the client. Destroys the session after a few seconds if it is dead. */
  #probe(): void {
    const sentBytes = this.#sentBytes;
    // The ping is sent at once, unless the session is dead.
    const takesFrames = sentBytes - this.#readBytes <= ALWAYS_TAKEN_BYTES;
    let isAnswered = false;
    this.#unanswered++;
    this.session.ping((error) => {
      if (error !== null) return;
      isAnswered = true;
      this.#unanswered = 0;
      this.#readBytes = sentBytes;
      this.received();
      this.#lastAnswer = this.#lastSign;
    });
    if (!takesFrames) return;
    this.#after(STUCK_MS, () => {
      // A later message may wait for a slow client. The queue says nothing then.
      if (!isAnswered && this.#queued() > 0 && this.#sentBytes === sentBytes) this.session.destroy();
    });
  }

  /** True if the client has taken something since the last call: then a write ended, or its window changed. */
  #hasProgressed(): boolean {
    const before = this.#seen;
    const window = this.#state()?.remoteWindowSize ?? 0;
    this.#seen = { writes: this.#writes, window };
    return before.writes !== this.#writes || before.window !== window;
  }

  #keepAlive(waitMs: number): void {
    this.#after(waitMs, () => {
      const { keepaliveTimeMs } = this.options;
      const silentMs = performance.now() - this.#lastSign;
      if (silentMs < keepaliveTimeMs) this.#keepAlive(keepaliveTimeMs - silentMs);
      else this.#ping();
    });
  }

  #ping(): void {
    const { keepaliveTimeMs, keepalivePermitWithoutCalls, http2MaxPingsWithoutData } = this.options;
    const wanted = this.#calls > 0 || keepalivePermitWithoutCalls;
    const allowed = http2MaxPingsWithoutData === 0 || this.#pingsWithoutData < http2MaxPingsWithoutData;
    if (wanted && allowed) {
      this.#pingsWithoutData++;
      this.#pingInTime();
    }
    this.#keepAlive(keepaliveTimeMs);
  }

  /**
   * Pings the client, and destroys the session if the answer does not come in time. The time begins when the ping
   * leaves the session: it waits behind a message that a slow client is reading.
   */
  #pingInTime(): void {
    const writes = this.#writes;
    let isAnswered = false;
    let hasLeft = false;
    this.session.ping((error) => {
      if (error !== null) return;
      isAnswered = true;
      this.received();
    });
    setImmediate(() => {
      hasLeft = this.#queued() === 0;
    });
    const expect = (): void => {
      this.#after(this.options.keepaliveTimeoutMs, () => {
        if (isAnswered) return;
        if (hasLeft) this.session.destroy();
        else {
          hasLeft = this.#writes !== writes || this.#queued() === 0;
          expect();
        }
      });
    };
    expect();
  }

  /** Frames that the session has not passed to the system. */
  #queued(): number {
    return this.session.destroyed ? 0 : (this.#state()?.outboundQueueSize ?? 0);
  }

  /** The state of the session. Bun has none while it ends a session: then nothing is queued. */
  #state(): ServerHttp2Session["state"] | undefined {
    return this.session.state;
  }

  /**
   * Delays each `destroy` of the session, Node's own calls too, until the session has parsed what it is reading. A
   * session that cannot send ends with its connection.
   *
   * nghttp2 before 1.68.1, which Node 20 has, continues with the bytes of the read when the session is destroyed during
   * it. A frame of a wrong length among them then aborts the process (CVE-2026-27135).
   *
   * Node lets go of the answers of a destroyed session while the system still sends from their memory. A client that
   * reads again later would get what is in this memory by then: answers to others.
   */
  #destroyBetweenReads(): void {
    const session = this.session;
    const destroy = session.destroy.bind(session);
    let isDue = false;
    session.destroy = (error, code) => {
      if (isDue) return;
      isDue = true;
      setImmediate(() => {
        const isStuck = this.#pendingWrites > 0 || this.#queued() > 0;
        destroy(error, code);
        if (isStuck) this.socket.destroy();
      });
    };
  }

  /** Calls `action` after this time, when all that has arrived by then is read. */
  #after(ms: number, action: () => void): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        setImmediate(() => {
          if (!this.session.destroyed) action();
        });
      },
      Math.min(ms, LONGEST_TIMEOUT_MS),
    ).unref();
    this.#timers.add(timer);
  }
}

/** Adds or subtracts up to a tenth, so that connections that were opened together do not reconnect together. */
function jittered(ms: number): number {
  return ms * (0.9 + 0.2 * Math.random());
}

type PingRules = Pick<
  ResolvedConnectionOptions,
  "http2MinRecvPingIntervalWithoutDataMs" | "http2MaxPingStrikes" | "keepalivePermitWithoutCalls"
>;

/**
 * Shortest interval between pings while there is no call and pings without calls are not permitted, in milliseconds.
 */
const IDLE_INTERVAL_MS = 7_200_000;

/**
 * Counts the pings that come too early. Headers and data from the server reset the count: clients may answer them with
 * a ping.
 */
export class PingAbuse {
  #last = Number.NEGATIVE_INFINITY;
  #strikes = 0;

  constructor(private readonly rules: PingRules) {}

  isOneTooMany(now: number, calls: number): boolean {
    const { http2MaxPingStrikes, http2MinRecvPingIntervalWithoutDataMs, keepalivePermitWithoutCalls } =
      this.rules;
    const idle = calls === 0 && !keepalivePermitWithoutCalls;
    const allowed = this.#last + (idle ? IDLE_INTERVAL_MS : http2MinRecvPingIntervalWithoutDataMs);
    this.#last = now;
    if (now >= allowed) return false;
    this.#strikes++;
    return http2MaxPingStrikes > 0 && this.#strikes > http2MaxPingStrikes;
  }

  /** Resets the count: the server has sent headers or data. */
  pardon(): void {
    this.#last = Number.NEGATIVE_INFINITY;
    this.#strikes = 0;
  }
}

/*
 * nghttp2 accepts 1000 resets at once and 33 a second. Beyond that it sends GOAWAY and stops reading and writing,
 * without telling Node. These limits are reached first.
 */
export const BURST = 900;
export const RESETS_PER_SECOND = 30;

/** Token bucket for the calls that a client resets. */
export class ResetAbuse {
  #tokens = BURST;
  #last = Number.NEGATIVE_INFINITY;

  /** Counts a reset at `now`, in milliseconds; true when it exceeds the limit. */
  isOneTooMany(now: number): boolean {
    const earned = ((now - this.#last) / 1000) * RESETS_PER_SECOND;
    this.#tokens = Math.min(BURST, this.#tokens + earned) - 1;
    this.#last = now;
    return this.#tokens < 0;
  }
}

/**
 * Makes a listener for plain connections that passes them on after a successful TLS handshake.
 *
 * @throws TritonError INVALID_ARG if a certificate is invalid or does not match the key
 */
export function overTls(tls: TlsOptions, accept: (socket: Socket) => void): (socket: Socket) => void {
  const options = { ...resolveTls(tls, createSecureContext), ALPNProtocols: ["h2"] };
  const server = createServer(options, accept);
  return (socket) => void server.emit("connection", socket);
}

/** Keepalive, pings, age and limits of connections, with the names of tritonserver's `--grpc-*` options. */
export interface ConnectionOptions {
  /** Idle milliseconds after which the server pings the client. */
  readonly keepaliveTimeMs?: number;
  /** Milliseconds that the server waits for the answer to its ping before it closes the connection. */
  readonly keepaliveTimeoutMs?: number;
  /** Permits keepalive pings, the server's and the client's, on connections without a call. */
  readonly keepalivePermitWithoutCalls?: boolean;
  /** Pings that the server sends without data between them; 0 for no limit. */
  readonly http2MaxPingsWithoutData?: number;
  /** Milliseconds that clients have to leave between pings while the server sends them nothing. */
  readonly http2MinRecvPingIntervalWithoutDataMs?: number;
  /** Early pings after which the connection is closed; 0 for no limit. */
  readonly http2MaxPingStrikes?: number;
  /** Age after which a connection accepts no more calls, give or take a tenth; no limit unless given. */
  readonly maxConnectionAgeMs?: number;
  /** Milliseconds that calls have to finish on a connection past its age; no limit unless given. */
  readonly maxConnectionAgeGraceMs?: number;
  /** Concurrent calls on a connection. Clients hold further calls back; calls that come anyway are rejected. */
  readonly maxConcurrentStreams?: number;
  /**
   * Bytes that one connection may hold in its HTTP/2 session, mainly responses that its client has not read. Above the
   * limit, new calls of the connection are rejected, and calls in flight continue. Message sizes have a limit of their
   * own.
   */
  readonly maxSessionMemory?: number;
  /** Most bytes in the headers of a call. A call with more ends with RESOURCE_EXHAUSTED. */
  readonly maxMetadataSize?: number;
}

type ResolvedConnectionOptions = ConnectionOptions & typeof CONNECTION_DEFAULTS;

/** The default of each option: tritonserver's, if it has one. */
export const CONNECTION_DEFAULTS = {
  keepaliveTimeMs: 7_200_000,
  keepaliveTimeoutMs: 20_000,
  keepalivePermitWithoutCalls: false,
  http2MaxPingsWithoutData: 2,
  http2MinRecvPingIntervalWithoutDataMs: 300_000,
  http2MaxPingStrikes: 2,
  /** A call costs about 1.5 KB before its first message; busy clients have a few hundred calls on a connection. */
  maxConcurrentStreams: 1024,
  /** Far above the unread responses of a client that keeps reading. */
  maxSessionMemory: 1024 * 1024 * 1024,
  /** The most that Node's HTTP/2 accepts. grpcio accepts 8 KiB to 16 KiB, grpc-js as much as Node. */
  maxMetadataSize: 65_535,
};

/** How much time to spend on the compression of responses. */
export type CompressionLevel = "none" | "low" | "medium" | "high";

/** The limit on messages, which all calls of a server share. */
export interface MessageLimit {
  readonly bytes: number;
  /** Name of the option for the limit, for the errors of clients. */
  readonly name: string;
}

export interface TransportOptions extends ResolvedConnectionOptions {
  /** Largest accepted message, also after decompression. */
  readonly messageLimit: MessageLimit;
  /** Counts messages from their first byte to the end of their request. */
  readonly requestMemory: RequestMemory;
  /** Compression of responses to inferences, for clients that accept it. */
  readonly inferResponseCompressionLevel: CompressionLevel;
}
