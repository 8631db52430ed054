import type { AnalyzeFigures, LevelRun } from "../../src/analyze/candidate.js";

/** A measurement of the model "m" with these figures. */
export function runOf(figures: Partial<AnalyzeFigures>, model = "m"): LevelRun {
  return {
    level: { mode: "concurrency", value: 1 },
    models: {
      [model]: {
        failures: 0,
        figures: {
          perf_throughput: 100,
          perf_latency_avg: 10,
          perf_latency_p90: 15,
          perf_latency_p95: 18,
          perf_latency_p99: 20,
          cpu_used_ram: 500,
          ...figures,
        },
      },
    },
  };
}
