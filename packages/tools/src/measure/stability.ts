import type { RequestFigures } from "./request-figures.js";

/** Number of windows that must agree. */
export const STABLE_WINDOWS = 3;

/** What differs too much between the last windows. */
export type Instability = "throughput" | "latency" | "throughput and latency" | "too few windows";

/** When a level counts as stable. */
export interface StabilityRules {
  /** Percentage by which the largest value may exceed the smallest one. */
  readonly percentage: number;
  /** Percentile of the latency that is compared; the mean unless given. */
  readonly percentile?: number;
}

/**
 * Compares the last three windows: the largest throughput and latency may exceed the smallest ones by the percentage.
 * Undefined when they are stable.
 */
export function instabilityOf(
  windows: readonly RequestFigures[],
  { percentage, percentile }: StabilityRules,
): Instability | undefined {
  if (windows.length < STABLE_WINDOWS) return "too few windows";
  const last = windows.slice(-STABLE_WINDOWS);
  const ratio = 1 + percentage / 100;
  const throughput = spread(last.map((window) => window.throughput)) <= ratio;
  const latency = spread(last.map((window) => window.latencyAt(percentile))) <= ratio;
  if (throughput) return latency ? undefined : "latency";
  return latency ? "throughput" : "throughput and latency";
}

/** Largest value divided by the smallest one; infinite where there is none, or the smallest one is 0. */
function spread(values: readonly number[]): number {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (high === 0 && low === 0) return Number.POSITIVE_INFINITY;
  return low > 0 ? high / low : Number.POSITIVE_INFINITY;
}
