import { status } from "@grpc/grpc-js";
import type { CallStatus } from "../../status-from-code.js";

/** How an attempt failed: before anything was sent, without an answer, or with the answer UNAVAILABLE. */
export type Failure = "not-sent" | "lost" | "unavailable";

/** When to try again. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  readonly delayMs: number;
  /** Whether an answer of UNAVAILABLE is a reason. */
  readonly unavailable: boolean;
}

const MAX_DELAY_MS = 5_000;

/**
 * How long to wait before the next attempt; undefined when there is to be none.
 *
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

/** What grpc-js says of calls that found no connection. */
const NOT_SENT = /^(No connection established|Name resolution failed)/;

/** What it says of calls whose connection broke. */
const LOST = /^(Connection dropped|Stream refused|Received RST_STREAM|read |write )/;

/** What kind of failure a status is; undefined for one that would come again. */
export function failureOf({ code, details }: CallStatus): Failure | undefined {
  if (code !== status.UNAVAILABLE && code !== status.INTERNAL) return undefined;
  if (NOT_SENT.test(details)) return "not-sent";
  if (LOST.test(details)) return "lost";
  return code === status.UNAVAILABLE ? "unavailable" : undefined;
}
