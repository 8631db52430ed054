import type { CommonClientOptions } from "../options/client-options.js";

/** How an attempt failed: before anything was sent, without an answer, or with the answer that the server is not available. */
export type Failure = "not-sent" | "lost" | "unavailable";

/** When to try again. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  readonly delayMs: number;
  /** Whether such an answer is a reason. */
  readonly unavailable: boolean;
}

/** What the server said of when to come again, and the time that there is for it. */
export interface RetryHint {
  /** Milliseconds that the server wants to be left alone; `Infinity` for ever. */
  readonly retryAfterMs: number | undefined;
  /** Milliseconds until nobody waits for the call any more. */
  readonly leftMs: number;
}

const MAX_DELAY_MS = 5_000;

/** Timers cannot wait longer. */
const LONGEST_MS = 2 ** 31 - 1;

/** Enough for a server that restarts or a closed connection, and too few to add to an overload. */
const DEFAULT_RETRIES = 2;

/** Long enough for a listening socket to come back, short enough not to be felt. */
const DEFAULT_RETRY_DELAY_MS = 100;

/** The retry policy of a client with these options. */
export function retryPolicy({ retries, retryDelayMs, retryUnavailable }: CommonClientOptions): RetryPolicy {
  return {
    retries: retries ?? DEFAULT_RETRIES,
    delayMs: retryDelayMs ?? DEFAULT_RETRY_DELAY_MS,
    unavailable: retryUnavailable ?? false,
  };
}

/**
 * How long to wait before the next attempt; undefined when there is to be none.
 *
 * @param failure undefined for one that would come again
 * @param attempt attempts made before the one that failed
 * @param idempotent whether doing the same twice is like doing it once
 * @param hint a server that knows when it can be asked again is not asked before, and not at all when that is too late
 */
export function retryDelay(
  failure: Failure | undefined,
  attempt: number,
  idempotent: boolean,
  { retries, delayMs, unavailable }: RetryPolicy,
  hint?: RetryHint,
): number | undefined {
  if (failure === undefined) return undefined;
  const safe = failure === "not-sent" || (failure === "lost" ? idempotent : unavailable);
  if (!safe || attempt >= retries) return undefined;
  const delay = Math.min(delayMs * 2 ** attempt, MAX_DELAY_MS);
  if (hint?.retryAfterMs === undefined) return delay;
  const { retryAfterMs, leftMs } = hint;
  return retryAfterMs < leftMs && retryAfterMs <= LONGEST_MS ? Math.max(delay, retryAfterMs) : undefined;
}
