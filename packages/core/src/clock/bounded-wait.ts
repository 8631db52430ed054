import type { Clock } from "./clock.js";

/**
 * Waits for a promise to settle, one way or the other, or for the time limit, which may be infinite. Tells whether it
 * has settled.
 */
export function settledWithin(clock: Clock, timeoutMs: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = Number.isFinite(timeoutMs) ? clock.setTimer(timeoutMs, () => resolve(false)) : undefined;
    void promise
      .catch(() => {})
      .then(() => {
        timer?.cancel();
        resolve(true);
      });
  });
}
