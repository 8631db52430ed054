import type { Clock } from "./clock.js";

/**
 * Waits until a promise settles or the time limit passes. The limit may be infinite. Resolves to true if the promise
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

/** Resolves when a time has passed. */
export function elapsed(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve));
}
