import type { ModelConfig } from "@tritonjs/protocol";
import { Random } from "../../data/random.js";
import {
  type ClosedLoop,
  type SimulatedRequest,
  type SimulationResult,
  simulate,
} from "../../simulate/simulate.js";
import type { AnalyzeFigures, AnalyzeLevel, ModelRun } from "../figures.js";

/** Requests of a simulation: enough for a p99, and for each client to come several times. */
const REQUESTS = { least: 400, perClient: 8, most: 6000, scheduled: 1000 } as const;

/** A simulation of one configuration under one load. */
export interface SimulatedLoadOptions {
  readonly config: ModelConfig;
  readonly level: AnalyzeLevel;
  /** Rows of each request. */
  readonly rows: number;
  readonly duration: (rows: number) => number;
  readonly signal: AbortSignal;
}

/** Runs a load through the project's scheduler on a virtual clock. The memory is not simulated. */
export async function simulateLoad(options: SimulatedLoadOptions): Promise<ModelRun> {
  const { config, level, rows, duration, signal } = options;
  const result = await simulate({
    config,
    requests: requestsOf(level, rows),
    times: { duration, gapMs: 0, wakeMs: 0 },
    signal,
  });
  const warmUp = level.mode === "concurrency" ? level.value : 0;
  const [failureText] = result.failures.keys();
  return {
    figures: figuresOf(result, warmUp, rows),
    meanRows: result.batches.reduce((sum, batch) => sum + batch.rows, 0) / Math.max(1, result.batches.length),
    failures: [...result.failures.values()].reduce((sum, count) => sum + count, 0),
    ...(failureText !== undefined && { failureText }),
  };
}

function requestsOf(level: AnalyzeLevel, rows: number): ClosedLoop | SimulatedRequest[] {
  if (level.mode === "concurrency") {
    const count = Math.min(REQUESTS.most, Math.max(REQUESTS.least, REQUESTS.perClient * level.value));
    return { concurrency: level.value, count: Math.max(count, 3 * level.value), rows };
  }
  const random = new Random(1);
  const gapMs = 1000 / level.value;
  const requests: SimulatedRequest[] = [];
  let atMs = 0;
  for (let i = 0; i < REQUESTS.scheduled; i++) {
    requests.push({ atMs, rows });
    atMs += level.distribution === "poisson" ? random.exponential() * gapMs : gapMs;
  }
  return requests;
}

/** Figures of the requests after the first ones of each client, which all arrive at once. */
function figuresOf({ latenciesMs, endsMs }: SimulationResult, warmUp: number, rows: number): AnalyzeFigures {
  const latencies = [...latenciesMs.subarray(warmUp)].filter((ms) => !Number.isNaN(ms)).sort((a, b) => a - b);
  const at = (percentile: number) =>
    latencies[Math.max(0, Math.ceil((percentile / 100) * latencies.length) - 1)] ?? Number.NaN;
  const sum = latencies.reduce((total, ms) => total + ms, 0);
  return {
    perf_throughput: throughputOf(endsMs, latencies.length === 0 ? 0 : warmUp, latenciesMs) * rows,
    perf_latency_avg: latencies.length === 0 ? Number.NaN : sum / latencies.length,
    perf_latency_p90: at(90),
    perf_latency_p95: at(95),
    perf_latency_p99: at(99),
    cpu_used_ram: Number.NaN,
  };
}

/**
 * Successful requests a second between the ends of two batches: the number of ends after a moment, divided by the time
 * since then. The last requests of a closed loop, when clients have nothing more to send, do not count.
 */
function throughputOf(endsMs: Float64Array, tail: number, latenciesMs: Float64Array): number {
  const ends = [...endsMs].filter((end, i) => !Number.isNaN(end) && !Number.isNaN(latenciesMs[i]!));
  ends.sort((a, b) => a - b);
  const from = ends[Math.min(tail, ends.length - 1)];
  const to = ends[Math.max(0, ends.length - 1 - tail)];
  if (from === undefined || to === undefined || !(to > from)) {
    const last = ends.at(-1);
    return last === undefined || last === 0 ? 0 : (ends.length * 1000) / last;
  }
  const count = ends.filter((end) => end > from && end <= to).length;
  return (count * 1000) / (to - from);
}
