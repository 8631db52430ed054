import { type ModelStatisticsReport, type ResponseStatistics, TritonError } from "@tritonjs/protocol";
import { parseVersion } from "../model/parse-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { ModelStatistics } from "../observe/statistics.js";

/**
 * Reports the statistics of the ready versions of all models, of one model, or of one version.
 *
 * @param name name of the model; empty for all
 * @param version version in decimal digits; empty for all
 * @throws TritonError INVALID_ARG if the named model or version is not ready.
 */
export function reportReady(registry: ModelRegistry, name: string, version: string): ModelStatisticsReport[] {
  const wanted = parseVersion(version);
  const ready = registry.ready(name === "" ? undefined : name);
  const chosen = wanted === undefined ? ready : ready.filter((model) => BigInt(model.version) === wanted);
  if (name !== "" && ready.length === 0) throw notAvailable(`requested model '${name}' is not available`);
  if (name !== "" && chosen.length === 0)
    throw notAvailable(`requested model version is not available for model '${name}'`);
  return chosen.map((model) => reportStatistics(model.name, model.version, model.statistics));
}

function notAvailable(text: string): TritonError {
  return new TritonError("INVALID_ARG", text, { reason: "MODEL_NOT_AVAILABLE" });
}

/** Copies the counters into a report. */
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
