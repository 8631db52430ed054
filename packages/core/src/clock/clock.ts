import { performance } from "node:perf_hooks";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";

/** A task scheduled on a {@link Clock}. Calling `cancel` after it ran does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * Time as a parameter. All code that waits or measures asks a clock, so that schedulers behave the same under the real
 * clock and under the {@link VirtualClock} of tests and simulations.
 */
export interface Clock {
  /** Monotonic time in milliseconds, with fractions. Its zero has no meaning. */
  now(): number;
  /** Wall time in milliseconds since 1970, for display. */
  wallNow(): number;
  /** Calls `run` once, not before `delayMs` have passed. */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after the pending events have been handled, before any timer. */
  defer(run: () => void): void;
}

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

/** The real clock, with timers that do not keep the process alive. */
export const quietClock: Pick<Clock, "now" | "setTimer"> = {
  now: realClock.now,
  setTimer(delayMs, run) {
    const timer = setTimeout(run, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
