import { performance } from "node:perf_hooks";

/** The time by which windows are cut. */
export interface MeasureClock {
  /** Milliseconds since the epoch, with fractions, as in the generator's records. */
  now(): number;
  /** Resolves after `ms` milliseconds, or as soon as the signal aborts. It never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The time of this process. */
export const processClock: MeasureClock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
    }),
};
