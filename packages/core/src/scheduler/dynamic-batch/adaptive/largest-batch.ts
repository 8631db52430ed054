import { type DurationCurve, expectedMs } from "./duration-curve.js";

/** Share of the best throughput that is enough. */
const ENOUGH_THROUGHPUT = 0.99;
/** Batches are not made smaller than this for their throughput: from equal sizes nothing would be learnt. */
const LEAST_ROWS = 4;

/** What the configuration says. */
export interface AdaptiveRules {
  readonly targetLatencyMs: number;
  readonly maxBatchSize: number;
}

/**
 * The largest batch worth running. Under load, whoever just missed a batch waits for its end and then takes as long
 * again, so that a batch may take half of the target. Of those that do, a smaller one with nearly the throughput of
 * the largest answers sooner.
 */
export function largestBatch(curve: DurationCurve, rules: AdaptiveRules): number {
  const { targetLatencyMs: target, maxBatchSize } = rules;
  const { fixedMs, perRowMs } = curve;
  const one = expectedMs(curve, 1);
  // The target cannot be kept at all: then at least the throughput is the best.
  if (one >= target) return maxBatchSize;
  const longestMs = one < target / 2 ? target / 2 : (one + target) / 2;
  const inTime = perRowMs > 0 ? Math.floor((longestMs - fixedMs) / perRowMs) : maxBatchSize;
  const largest = Math.max(1, Math.min(maxBatchSize, inTime));
  const throughput = (ENOUGH_THROUGHPUT * largest) / expectedMs(curve, largest);
  const enough = Math.ceil((throughput * fixedMs) / (1 - throughput * perRowMs));
  return Math.min(largest, Math.max(enough, LEAST_ROWS));
}
