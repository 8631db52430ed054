/** Metrics of a measurement, with Model Analyzer's tags. Latencies are milliseconds, memory is megabytes. */
export interface AnalyzeFigures {
  /** Inferences a second. */
  readonly perf_throughput: number;
  readonly perf_latency_avg: number;
  readonly perf_latency_p90: number;
  readonly perf_latency_p95: number;
  readonly perf_latency_p99: number;
  /** Memory of this process and its child processes. */
  readonly cpu_used_ram: number;
}

export type MetricTag = keyof AnalyzeFigures;

/** All metrics, and whether larger values are better. */
export const METRICS: Readonly<
  Record<MetricTag, { readonly largerIsBetter: boolean; readonly unit: string }>
> = {
  perf_throughput: { largerIsBetter: true, unit: "infer/s" },
  perf_latency_avg: { largerIsBetter: false, unit: "ms" },
  perf_latency_p90: { largerIsBetter: false, unit: "ms" },
  perf_latency_p95: { largerIsBetter: false, unit: "ms" },
  perf_latency_p99: { largerIsBetter: false, unit: "ms" },
  cpu_used_ram: { largerIsBetter: false, unit: "MB" },
};

export const METRIC_TAGS = Object.keys(METRICS) as readonly MetricTag[];

/** Load of one measurement. */
export interface AnalyzeLevel {
  readonly mode: "concurrency" | "request_rate";
  readonly value: number;
  readonly distribution?: "constant" | "poisson";
}

/** What one model did in a measurement. */
export interface ModelRun {
  readonly figures: AnalyzeFigures;
  /** Mean rows of a batch; absent where the server does not tell. */
  readonly meanRows?: number;
  /** Number of batches a second. */
  readonly batchesPerSecond?: number;
  /** Number of failed requests, and the text of one of them. */
  readonly failures: number;
  readonly failureText?: string;
}

/** A candidate at one level of load. */
export interface LevelRun {
  readonly level: AnalyzeLevel;
  /** By loaded model. */
  readonly models: Readonly<Record<string, ModelRun>>;
  /** Number of measurements of which the figures are the mean. @default 1 */
  readonly measurements?: number;
}
