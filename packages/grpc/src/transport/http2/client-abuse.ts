/** Limits on the pings of clients. */
export interface PingRules {
  readonly http2MinRecvPingIntervalWithoutDataMs: number;
  readonly http2MaxPingStrikes: number;
  readonly keepalivePermitWithoutCalls: boolean;
}

/**
 * Shortest interval between pings while there is no call and pings without calls are not permitted, in milliseconds.
 */
const IDLE_INTERVAL_MS = 7_200_000;

/**
 * Counts the pings that come too early. Headers and data from the server reset the count: clients may answer them with
 * a ping.
 */
export class PingAbuse {
  readonly #rules: PingRules;
  #last = Number.NEGATIVE_INFINITY;
  #strikes = 0;

  constructor(rules: PingRules) {
    this.#rules = rules;
  }

  /** Counts a ping; true when it exceeds the limit. */
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
