import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";

/** Longest wait without progress, in milliseconds. */
export const MAX_SILENCE_MS = 30_000;

/** The signal that cancels work, and the clock. */
export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Waits for work of an SDK. The wait ends when `signal` aborts and after half a minute without progress, even if the
 * SDK ignores the signal.
 *
 * @throws TritonError UNAVAILABLE when the work is cancelled
 */
export async function withSilenceLimit<T>(
  { clock, signal }: Patience,
  work: (signal: AbortSignal, alive: () => void) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  let lastSign = clock.now();
  let timer: { cancel(): void } | undefined;
  const watch = (afterMs: number) => {
    timer = clock.setTimer(afterMs, () => {
      const leftMs = lastSign + MAX_SILENCE_MS - clock.now();
      if (leftMs > 0) watch(leftMs);
      else
        own.abort(
          new TritonError("UNAVAILABLE", `no answer for ${MAX_SILENCE_MS / 1000} seconds`, {
            reason: "STORAGE_TIMEOUT",
          }),
        );
    });
  };
  const onAbort = () => own.abort(signal.reason);
  if (signal.aborted) throw TritonError.from(signal.reason, "UNAVAILABLE");
  signal.addEventListener("abort", onAbort);
  const givenUp = new Promise<never>((_, reject) => {
    own.signal.addEventListener("abort", () => reject(TritonError.from(own.signal.reason, "UNAVAILABLE")));
  });
  watch(MAX_SILENCE_MS);
  try {
    const done = work(own.signal, () => {
      lastSign = clock.now();
    });
    // The result of cancelled work is ignored.
    done.catch(() => {});
    return await Promise.race([done, givenUp]);
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
