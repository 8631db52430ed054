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

/** The clock of the machine. */
export const realLoadClock: LoadClock = {
  now: epochNow,
  wakeAt(time, run) {
    let timer: NodeJS.Timeout | undefined;
    let immediate: NodeJS.Immediate | undefined;
    const look = (): void => {
      const waitMs = time - epochNow();
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
