import type { FigureOptions } from "./request-figures.js";
import type { StabilityRules } from "./stability.js";

/** How levels are measured. Times are milliseconds. */
export interface MeasureOptions extends FigureOptions {
  /** Windows of equal time, or of an equal number of requests. */
  readonly mode: "time_windows" | "count_windows";
  /** Length of a time window. */
  readonly intervalMs: number;
  /** A time window in which no request has ended goes on until one has, at most to this length. */
  readonly longestIntervalMs?: number;
  /** Fewest requests in a count window. */
  readonly windowRequestCount: number;
  /** Measures exactly this number of requests in one window, which counts as stable. */
  readonly requestCount?: number;
  /** Requests that are sent before the first level is measured. */
  readonly warmupRequestCount: number;
  /** Largest number of windows of a level. */
  readonly maxTrials: number;
  readonly stability: StabilityRules;
  /** Limit on the latency: its mean, or the percentile of `stability`. */
  readonly latencyLimitMs?: number;
}

/** A count window in which no request ends for this time, or for an interval if that is longer, has none. */
export const SILENCE_MS = 60_000;

/** Time between two looks at a count window. */
export const COUNT_POLL_MS = 100;

/** Windows are taken in pieces of this length, for the progress and the timeline. A window of a ramp has one. */
export const PIECE_MS = 1000;
