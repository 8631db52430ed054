import type { Duration } from "@tritonjs/protocol";
import { type ModelCounters, SERVER_STAGES, type ServerStage } from "./server-view.js";

/** What one model did between two looks at its counters. */
export interface ServerFigures {
  readonly name: string;
  readonly version: string;
  /** Rows that were inferred, and executions of the model. */
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly stages: Readonly<Record<ServerStage, Duration>>;
  /** Executions by their batch size, smallest first. */
  readonly batches: readonly { readonly batchSize: number; readonly count: number }[];
  /** Batches by the reason why they were cut, where the server tells. */
  readonly cuts?: Readonly<Record<string, number>>;
  /** Models of the steps of an ensemble. */
  readonly composing: readonly ServerFigures[];
}

/** Mean time of a stage over the successful requests, in milliseconds. */
export function stageMs(figures: ServerFigures, stage: ServerStage): number {
  const { count } = figures.stages.success;
  return count === 0 ? 0 : figures.stages[stage].ns / count / 1e6;
}

/** Mean time in the server outside its queue, its cache and the model, in milliseconds. */
export function overheadMs(figures: ServerFigures): number {
  const known = (["queue", "computeInput", "computeInfer", "computeOutput"] as const).reduce(
    (sum, stage) => sum + stageMs(figures, stage),
    stageMs(figures, "cacheHit") + stageMs(figures, "cacheMiss"),
  );
  return Math.max(0, stageMs(figures, "success") - known);
}

/** Whether requests passed a response cache. */
export function usesCache({ stages }: ServerFigures): boolean {
  return stages.cacheHit.count + stages.cacheMiss.count > 0;
}

/** Difference of the counters of one model version. Counters that a reload has reset count from zero. */
export function counterDifference(before: ModelCounters | undefined, after: ModelCounters): ServerFigures {
  const reset = before !== undefined && before.stages.success.count > after.stages.success.count;
  const from = reset ? undefined : before;
  const batches = [...after.batches]
    .map(([batchSize, count]) => ({ batchSize, count: count - (from?.batches.get(batchSize) ?? 0) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.batchSize - b.batchSize);
  return {
    name: after.name,
    version: after.version,
    inferenceCount: after.inferenceCount - (from?.inferenceCount ?? 0),
    executionCount: after.executionCount - (from?.executionCount ?? 0),
    stages: Object.fromEntries(
      SERVER_STAGES.map((stage) => [stage, minus(after.stages[stage], from?.stages[stage])]),
    ) as Record<ServerStage, Duration>,
    batches,
    composing: [],
  };
}

function minus(after: Duration, before: Duration = { count: 0, ns: 0 }): Duration {
  return { count: after.count - before.count, ns: after.ns - before.ns };
}
