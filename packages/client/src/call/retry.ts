import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import type { CommonClientOptions } from "../options/client-options.js";

/**
 * How an attempt failed: before anything was sent, without an answer, or with the answer that the server is not
 * available.
 */
export type Failure = "not-sent" | "lost" | "unavailable";

/** Which attempts to retry, and when. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  readonly delayMs: number;
  /** Whether to retry after the answer that the server is not available. */
  readonly unavailable: boolean;
}

/** The server's hint about the next attempt, and the time left for it. */
export interface RetryHint {
  /** Milliseconds that the server asks to wait; `Infinity` for no retry at all. */
  readonly retryAfterMs: number | undefined;
  /** Milliseconds until the time limit of the call. */
  readonly leftMs: number;
}

const MAX_DELAY_MS = 5_000;

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
 * Milliseconds to wait before the next attempt; undefined for no further attempt.
 *
 * @param failure undefined for a failure that a retry would not change
 * @param attempt number of attempts before the failed one
 * @param idempotent whether sending the request twice has the same effect as sending it once
 * @param hint a server that names a time is not asked before it. If that is too late for the call, there is no retry
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
  return retryAfterMs < leftMs && retryAfterMs <= LONGEST_TIMEOUT_MS
    ? Math.max(delay, retryAfterMs)
    : undefined;
}
