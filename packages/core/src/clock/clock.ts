import { performance } from "node:perf_hooks";

/** Something scheduled on a {@link Clock}; `cancel` after it ran does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * Time as a parameter: everything that waits or measures asks a clock, so that schedulers run the same under
 * the real clock and under the {@link VirtualClock} of tests and simulations.
 */
export interface Clock {
  /** Monotonic time in milliseconds, with fractions. Its zero means nothing. */
  now(): number;
  /** Wall time in milliseconds since 1970, for what people read. */
  wallNow(): number;
  /** Calls `run` once, not before `delayMs` have passed. */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` once the events at hand have been handled, before any timer. */
  defer(run: () => void): void;
}

/** The longest delay of `setTimeout`, in milliseconds. It takes a longer one for no delay at all. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The clock of the running process. `defer` waits for the end of the event loop's poll phase. */
export const realClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  setTimer(delayMs, run) {
    let handle: NodeJS.Timeout;
    const wait = (leftMs: number) => {
      handle =
        leftMs > LONGEST_TIMEOUT_MS
          ? setTimeout(() => wait(leftMs - LONGEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
          : setTimeout(run, Math.max(1, Math.ceil(leftMs)));
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
  defer: (run) => {
    setImmediate(run);
  },
};
