import type { LoadGenerator } from "../../src/load/load-generator.js";
import type { MeasureClock, MeasureOptions, MeasureSession } from "../../src/measure/measure-level.js";

/** perf_analyzer's defaults. */
export const DEFAULT_MEASURE_OPTIONS: MeasureOptions = {
  batchSize: 1,
  mode: "time_windows",
  intervalMs: 5000,
  windowRequestCount: 50,
  warmupRequestCount: 0,
  maxTrials: 10,
  stability: { percentage: 10 },
};

/** A session without a server and without observers. */
export function sessionOf(
  generator: LoadGenerator,
  clock: MeasureClock,
  options: Partial<MeasureOptions> = {},
  rest: Partial<MeasureSession> = {},
): MeasureSession {
  return {
    generator,
    clock,
    options: { ...DEFAULT_MEASURE_OPTIONS, ...options },
    observer: {},
    signal: new AbortController().signal,
    ...rest,
  };
}
