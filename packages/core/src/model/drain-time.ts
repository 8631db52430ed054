import type { ModelStatistics } from "../observe/statistics.js";

/** What a model that has answered nothing yet is thought to need. */
const UNKNOWN_MS = 1000;

/**
 * About how many milliseconds the instances need for the requests that wait, by what executions took so far: the time
 * after which a refused request is worth sending again.
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
