import type { ModelStatistics } from "../observe/statistics.js";

/** Assumed milliseconds for a request of a model that has answered none yet. */
const UNKNOWN_MS = 1000;

/**
 * Estimates the milliseconds that the instances need for the waiting requests, from the executions so far. After that
 * time, retrying a refused request is worthwhile.
 */
export function drainTimeMs(
  { computeInput, computeInfer, computeOutput, executionCount }: ModelStatistics,
  waiting: number,
  instances: number,
): number {
  const answered = computeInfer.count;
  if (answered === 0) return UNKNOWN_MS;
  const executionMs = (computeInput.ns + computeInfer.ns + computeOutput.ns) / 1e6 / answered;
  const requestsPerExecution = answered / executionCount;
  return Math.max(1, Math.ceil((waiting * executionMs) / requestsPerExecution / Math.max(1, instances)));
}
