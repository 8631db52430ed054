/** What clients may do with pings. */
export interface PingRules {
  readonly http2MinRecvPingIntervalWithoutDataMs: number;
  readonly http2MaxPingStrikes: number;
  readonly keepalivePermitWithoutCalls: boolean;
}

/** The interval while there is no call, when pings without one are not wanted. */
const IDLE_INTERVAL_MS = 7_200_000;

/** Counts the pings that come too early. What the server sends pardons all before: clients may answer it by a ping. */
export class PingAbuse {
  readonly #rules: PingRules;
  #last = Number.NEGATIVE_INFINITY;
  #strikes = 0;

  constructor(rules: PingRules) {
    this.#rules = rules;
  }

  /** Takes a ping; true when it is one too many. */
  isOneTooMany(now: number, calls: number): boolean {
    const { http2MaxPingStrikes, http2MinRecvPingIntervalWithoutDataMs, keepalivePermitWithoutCalls } =
      this.#rules;
    const idle = calls === 0 && !keepalivePermitWithoutCalls;
    const allowed = this.#last + (idle ? IDLE_INTERVAL_MS : http2MinRecvPingIntervalWithoutDataMs);
    this.#last = now;
    if (now >= allowed) return false;
    this.#strikes++;
    return http2MaxPingStrikes > 0 && this.#strikes > http2MaxPingStrikes;
  }

  /** The server has sent headers or data. */
  pardon(): void {
    this.#last = Number.NEGATIVE_INFINITY;
    this.#strikes = 0;
  }
}

/*
 * nghttp2 takes 1000 resets at once and 33 a second. Beyond that it sends GOAWAY and neither reads nor writes any more,
 * of which Node learns nothing. These limits are reached first.
 */
const BURST = 900;
const RESETS_PER_SECOND = 30;

/** Counts the calls that a client resets: a token bucket. */
export class ResetAbuse {
  #tokens = BURST;
  #last = Number.NEGATIVE_INFINITY;

  /** Takes a reset at `now`, in milliseconds; true when it is one too many. */
  isOneTooMany(now: number): boolean {
    const earned = ((now - this.#last) / 1000) * RESETS_PER_SECOND;
    this.#tokens = Math.min(BURST, this.#tokens + earned) - 1;
    this.#last = now;
    return this.#tokens < 0;
  }
}
