import type { ModelStatisticsReport } from "@tritonjs/protocol";
import type { StatisticsRecord } from "./scenario.js";

/** The counts of a report, without durations. */
export function statisticsRecord(report: ModelStatisticsReport | undefined): StatisticsRecord {
  if (report === undefined) throw new Error("the model has no statistics");
  const { inferenceStats: stats } = report;
  return {
    inference_count: report.inferenceCount,
    execution_count: report.executionCount,
    success: stats.success.count,
    fail: stats.fail.count,
    queue: stats.queue.count,
    compute_input: stats.computeInput.count,
    compute_infer: stats.computeInfer.count,
    compute_output: stats.computeOutput.count,
    cache_hit: stats.cacheHit.count,
    cache_miss: stats.cacheMiss.count,
    batch_stats: report.batchStats.map(({ batchSize, computeInfer }) => ({
      batch_size: batchSize,
      compute_infer: computeInfer.count,
    })),
  };
}
