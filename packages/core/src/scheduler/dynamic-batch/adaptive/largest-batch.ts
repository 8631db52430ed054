import { type DurationCurve, expectedMs } from "./duration-curve.js";

/** Share of the best throughput that suffices. */
const ENOUGH_THROUGHPUT = 0.99;
/** Smallest batch size that is chosen for throughput: equal sizes would teach nothing about the curve. */
const LEAST_ROWS = 4;

/** Settings from the configuration. */
export interface AdaptiveRules {
  readonly targetLatencyMs: number;
  readonly maxBatchSize: number;
}

/**
 * The largest batch size worth running. Under load, a request that just missed a batch waits for its end and then takes
 * as long again. So a batch may take half of the target. Among these sizes, a smaller one with nearly the best
 * throughput answers sooner.
 */
export function largestBatch(curve: DurationCurve, rules: AdaptiveRules): number {
  const { targetLatencyMs: target, maxBatchSize } = rules;
  const { fixedMs, perRowMs } = curve;
  const one = expectedMs(curve, 1);
  // The target cannot be met at all, so aim for the best throughput.
  if (one >= target) return maxBatchSize;
  const longestMs = one < target / 2 ? target / 2 : (one + target) / 2;
  const inTime = perRowMs > 0 ? Math.floor((longestMs - fixedMs) / perRowMs) : maxBatchSize;
  const largest = Math.max(1, Math.min(maxBatchSize, inTime));
  const throughput = (ENOUGH_THROUGHPUT * largest) / expectedMs(curve, largest);
  const enough = Math.ceil((throughput * fixedMs) / (1 - throughput * perRowMs));
  return Math.min(largest, Math.max(enough, LEAST_ROWS));
}
