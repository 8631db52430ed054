import type { Duration } from "../observe/duration.js";
import type { ResponseStatistics } from "../observe/response-statistics.js";
import type { ModelStatistics } from "../observe/statistics.js";

/** Statistics of one model version: the protocol's `ModelStatistics` message. */
export interface ModelStatisticsReport {
  readonly name: string;
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly lastInference: number;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly inferenceStats: {
    readonly success: Duration;
    readonly fail: Duration;
    readonly queue: Duration;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
    readonly cacheHit: Duration;
    readonly cacheMiss: Duration;
  };
  /** Of decoupled models, by the index of a response among those to one request; of the first 1024. */
  readonly responseStats: Readonly<Record<string, Readonly<ResponseStatistics>>>;
  readonly batchStats: readonly {
    readonly batchSize: number;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
  }[];
  readonly memoryUsage: readonly { readonly type: string; readonly id: number; readonly byteSize: number }[];
}

/** Takes a copy of the counters. */
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
