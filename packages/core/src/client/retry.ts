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

const MAX_DELAY_MS = 5_000;

/**
 * How long to wait before the next attempt; undefined when there is to be none.
 *
 * @param failure undefined for one that would come again
 * @param attempt attempts made before the one that failed
 * @param idempotent whether doing the same twice is like doing it once
 */
export function retryDelay(
  failure: Failure | undefined,
  attempt: number,
  idempotent: boolean,
  { retries, delayMs, unavailable }: RetryPolicy,
): number | undefined {
  if (failure === undefined) return undefined;
  const safe = failure === "not-sent" || (failure === "lost" ? idempotent : unavailable);
  return safe && attempt < retries ? Math.min(delayMs * 2 ** attempt, MAX_DELAY_MS) : undefined;
}
