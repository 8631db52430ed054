import type { ModelStatisticsReport, ResponseStatistics } from "@tritonjs/protocol";
import type { ModelStatistics } from "./statistics.js";

/** Copies the statistics of a version in the form of the protocol. */
export function reportStatistics(
  name: string,
  version: number,
  statistics: ModelStatistics,
): ModelStatisticsReport {
  const { success, fail, queue, computeInput, computeInfer, computeOutput, cacheHit, cacheMiss } = statistics;
  return {
    name,
    version: String(version),
    lastInference: statistics.lastInference,
    inferenceCount: statistics.inferenceCount,
    executionCount: statistics.executionCount,
    inferenceStats: {
      success: { ...success },
      fail: { ...fail },
      queue: { ...queue },
      computeInput: { ...computeInput },
      computeInfer: { ...computeInfer },
      computeOutput: { ...computeOutput },
      cacheHit: { ...cacheHit },
      cacheMiss: { ...cacheMiss },
    },
    responseStats: Object.fromEntries(statistics.responses.byIndex.map(copyOf).entries()),
    batchStats: [...statistics.batches]
      .sort(([a], [b]) => a - b)
      .map(([batchSize, batch]) => ({
        batchSize,
        computeInput: { ...batch.computeInput },
        computeInfer: { ...batch.computeInfer },
        computeOutput: { ...batch.computeOutput },
      })),
    memoryUsage: [],
  };
}

function copyOf(stats: ResponseStatistics): ResponseStatistics {
  return {
    computeInfer: { ...stats.computeInfer },
    computeOutput: { ...stats.computeOutput },
    success: { ...stats.success },
    fail: { ...stats.fail },
    emptyResponse: { ...stats.emptyResponse },
    cancel: { ...stats.cancel },
  };
}
