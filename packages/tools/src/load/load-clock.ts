import { epochNow } from "../target/epoch-time.js";

/** A wake-up that can be cancelled. */
export interface WakeUp {
  cancel(): void;
}

/** Time for a loop: a parameter, so that tests can drive it. */
export interface LoadClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back at a time, a little later at worst, never before. */
  wakeAt(time: number, run: () => void): WakeUp;
}

/** Timers of Node fire up to a millisecond late, so the rest of a wait is spent in turns of the event loop. */
const TIMER_ERROR_MS = 1.2;

/** A turn of the event loop that takes longer than this did some work. */
const IDLE_TURN_MS = 0.05;

let waitedMs = 0;

/** Time that this thread has spent on waiting in turns of the event loop, in which it had nothing else to do. */
export const waitedInTurnsMs = (): number => waitedMs;

/** The clock of the machine. */
export const realLoadClock: LoadClock = {
  now: epochNow,
  wakeAt(time, run) {
    let timer: NodeJS.Timeout | undefined;
    let immediate: NodeJS.Immediate | undefined;
    let lookedAt = Number.NEGATIVE_INFINITY;
    const look = (): void => {
      const now = epochNow();
      const waitMs = time - now;
      if (now - lookedAt < IDLE_TURN_MS) waitedMs += now - lookedAt;
      lookedAt = now;
      if (waitMs <= 0) run();
      else if (waitMs > TIMER_ERROR_MS) timer = setTimeout(look, Math.floor(waitMs - TIMER_ERROR_MS));
      else immediate = setImmediate(look);
    };
    immediate = setImmediate(look);
    return {
      cancel() {
        clearTimeout(timer);
        clearImmediate(immediate);
      },
    };
  },
};
