import type { StatisticsRecord } from "../scheduler/scenario.js";
import type { StatisticsSnapshot } from "./traffic.js";

/** The counts of a recorded snapshot without durations, by name and version. */
export function snapshotRecords(
  snapshot: StatisticsSnapshot | undefined,
): (StatisticsRecord & { name: string; version: string })[] {
  const records = (snapshot?.model_stats ?? []).map((entry) => {
    const count = (event: string): number => entry.inference_stats[event]?.count ?? 0;
    return {
      name: entry.name,
      version: entry.version,
      inference_count: entry.inference_count,
      execution_count: entry.execution_count,
      success: count("success"),
      fail: count("fail"),
      queue: count("queue"),
      compute_input: count("compute_input"),
      compute_infer: count("compute_infer"),
      compute_output: count("compute_output"),
      cache_hit: count("cache_hit"),
      cache_miss: count("cache_miss"),
      batch_stats: entry.batch_stats.map(({ batch_size, compute_infer }) => ({
        batch_size,
        compute_infer: compute_infer.count,
      })),
    };
  });
  return records.sort((a, b) => (a.name + a.version < b.name + b.version ? -1 : 1));
}
