import type { ModelStatisticsReport } from "@tritonjs/protocol";
import type { PlainJson } from "../json/write-json.js";

type Duration = ModelStatisticsReport["inferenceStats"]["success"];

/** The answer of the statistics routes. */
export function toStatisticsJson(reports: readonly ModelStatisticsReport[]): PlainJson {
  return { model_stats: reports.map(reportJson) };
}

function reportJson(report: ModelStatisticsReport): PlainJson {
  const { inferenceStats: stats } = report;
  return {
    name: report.name,
    version: report.version,
    last_inference: report.lastInference,
    inference_count: report.inferenceCount,
    execution_count: report.executionCount,
    inference_stats: {
      success: duration(stats.success),
      fail: duration(stats.fail),
      queue: duration(stats.queue),
      compute_input: duration(stats.computeInput),
      compute_infer: duration(stats.computeInfer),
      compute_output: duration(stats.computeOutput),
      cache_hit: duration(stats.cacheHit),
      cache_miss: duration(stats.cacheMiss),
    },
    response_stats: Object.fromEntries(
      Object.entries(report.responseStats).map(([index, response]) => [
        index,
        {
          compute_infer: duration(response.computeInfer),
          compute_output: duration(response.computeOutput),
          success: duration(response.success),
          fail: duration(response.fail),
          empty_response: duration(response.emptyResponse),
          cancel: duration(response.cancel),
        },
      ]),
    ),
    batch_stats: report.batchStats.map((batch) => ({
      batch_size: batch.batchSize,
      compute_input: duration(batch.computeInput),
      compute_infer: duration(batch.computeInfer),
      compute_output: duration(batch.computeOutput),
    })),
    memory_usage: report.memoryUsage.map(({ type, id, byteSize }) => ({ type, id, byte_size: byteSize })),
  };
}

function duration({ count, ns }: Duration): PlainJson {
  return { count, ns };
}
