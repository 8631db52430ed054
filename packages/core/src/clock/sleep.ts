import type { Clock } from "./clock.js";

/** Resolves when the time has passed, or the signal aborts. Resolves at once for a time of 0. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0 || signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      signal?.removeEventListener("abort", end);
      timer.cancel();
      resolve();
    };
    const timer = clock.setTimer(ms, end);
    signal?.addEventListener("abort", end);
  });
}
