import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";

/** Nothing is waited for longer without a sign of life. */
export const MAX_SILENCE_MS = 30_000;

/** Who gives work up, and who tells the time. */
export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Waits for work of an SDK, which is given up when `signal` aborts and when there was no sign of life for half a minute,
 * whether the SDK listens or not.
 *
 * @throws TritonError UNAVAILABLE when it was given up
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
    // What comes of work that was given up interests nobody.
    done.catch(() => {});
    return await Promise.race([done, givenUp]);
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
