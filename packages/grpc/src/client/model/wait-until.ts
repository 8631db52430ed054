import { pause } from "../channel/abort.js";
import { TritonError } from "../core.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** What is waited for, and for how long. */
export interface WaitOptions {
  /** For the error: `model 'linear'`. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signals: readonly (AbortSignal | undefined)[];
}

/**
 * Asks again and again until the answer is yes. A server that cannot be reached or that says no is asked again,
 * less and less often.
 *
 * @throws TritonError UNAVAILABLE when the time is over, CANCELLED when a signal aborts.
 */
export async function waitUntil(
  isReady: (timeoutMs: number) => Promise<boolean>,
  { what, timeoutMs, signals }: WaitOptions,
): Promise<void> {
  const end = performance.now() + timeoutMs;
  let reason: unknown;
  for (let delay = FIRST_PAUSE_MS; ; delay = Math.min(delay * 2, LONGEST_PAUSE_MS)) {
    const left = end - performance.now();
    if (left <= 0) {
      throw new TritonError("UNAVAILABLE", `${what} was not ready within ${timeoutMs} ms`, { cause: reason });
    }
    try {
      if (await isReady(left)) return;
    } catch (thrown) {
      if (!TritonError.is(thrown) || thrown.code !== "UNAVAILABLE") throw thrown;
      reason = thrown;
    }
    await pause(Math.min(delay, Math.max(0, end - performance.now())), signals);
  }
}
