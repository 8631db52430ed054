import { TritonError } from "@tritonjs/protocol";
import { CallDeadline, pause } from "./deadline.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** Options of a wait: its subject and its time limit. */
export interface WaitOptions {
  /** The subject, for the error: `model 'linear'`. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signals: readonly (AbortSignal | undefined)[];
}

/**
 * Polls until the answer is yes, with growing pauses. A server that cannot be reached counts as a no.
 *
 * @throws TritonError UNAVAILABLE when the time is over, CANCELLED when a signal aborts.
 */
export async function waitUntil(
  isReady: (signal: AbortSignal) => Promise<boolean>,
  { what, timeoutMs, signals }: WaitOptions,
): Promise<void> {
  const deadline = new CallDeadline(timeoutMs, ...signals);
  let reason: unknown;
  try {
    for (let delay = FIRST_PAUSE_MS; ; delay = Math.min(delay * 2, LONGEST_PAUSE_MS)) {
      try {
        if (await isReady(deadline.signal)) return;
      } catch (thrown) {
        if (!TritonError.is(thrown) || thrown.code !== "UNAVAILABLE") throw thrown;
        if (deadline.fault === undefined) reason = thrown;
      }
      await pause(delay, deadline.signal);
    }
  } catch (thrown) {
    if (!deadline.timedOut) throw deadline.fault ?? thrown;
    throw new TritonError("UNAVAILABLE", `${what} was not ready within ${timeoutMs} ms`, {
      reason: "CLIENT_TIMEOUT",
      cause: reason,
    });
  } finally {
    deadline.end();
  }
}
