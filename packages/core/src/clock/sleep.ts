import type { Clock } from "./clock.js";

/** Resolves when the time has passed; at once for none. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return ms <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.setTimer(ms, resolve));
}
