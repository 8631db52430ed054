import type { Distribution } from "../measure/distribution.js";
import { type LevelResult, levelValue } from "../measure/level-result.js";
import { overheadMs, type ServerFigures, stageMs } from "../measure/server-watch.js";
import { TOKEN_METRIC_NAMES, TOKEN_METRICS, type TokenFigures } from "../measure/token-figures.js";
import type { RunDescription } from "./write-report.js";

const PERCENTILES = [1, 5, 10, 25, 50, 75, 90, 95, 99] as const;

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * All figures as JSON, with AIPerf's keys for those that it has. A run of one level has its figures at the top too, so
 * that programs which read `profile_export_aiperf.json` find them.
 */
export function figuresJson(results: readonly LevelResult[], run: RunDescription): string {
  const levels = results.map((result) => levelJson(result, run));
  const [only] = levels;
  const document: Json = {
    ...(levels.length === 1 && only !== undefined ? only : {}),
    input_config: { ...run } as unknown as Json,
    was_cancelled: results.some(({ interrupted }) => interrupted),
    levels,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function levelJson(result: LevelResult, run: RunDescription): { readonly [key: string]: Json | undefined } {
  const { figures, level, phase, instability, fault, server } = result;
  return {
    mode: level.mode,
    value: levelValue(level),
    phase,
    stable: instability === undefined && fault === undefined && !result.interrupted,
    instability,
    over_latency_limit: result.overLimit,
    error: fault?.text,
    start_time: timeText(figures.start),
    end_time: timeText(figures.end),
    request_count: { unit: "requests", avg: figures.requestCount },
    error_request_count: { unit: "requests", avg: figures.failureCount },
    error_summary: [...figures.failures].map(([text, count]) => ({
      error_details: { message: text },
      count,
    })),
    request_throughput: { unit: "requests/sec", avg: figures.requestThroughput },
    inference_throughput: { unit: "infer/sec", avg: figures.throughput },
    ...(run.decoupled && { response_throughput: { unit: "responses/sec", avg: figures.responseThroughput } }),
    scheduled_latency: statistics(figures.latency, "ms"),
    request_latency: statistics(figures.fromSend, "ms"),
    send_time: { unit: "ms", avg: figures.meanSendMs },
    response_wait: { unit: "ms", avg: figures.meanWaitMs },
    receive_time: { unit: "ms", avg: figures.meanReceiveMs },
    generator: {
      overhead: figures.overhead,
      event_loop_utilization: figures.eventLoopUtilization,
      cpu_utilization: figures.cpuUtilization,
      cpu_cores: figures.cpuCores,
      delayed: figures.delayedShare,
      cpu_ms_per_request: figures.cpuMsPerRequest,
    },
    ...(figures.tokens !== undefined && tokensJson(figures.tokens)),
    ...(server !== undefined && { server: serverJson(server) }),
    ...(result.metrics !== undefined && { metrics: result.metrics.gauges as unknown as Json }),
    timeline: result.timeline.map(({ start, throughput, meanMs, p99Ms, failureCount }) => ({
      start_time: new Date(start).toISOString(),
      throughput,
      avg_latency_ms: finite(meanMs),
      p99_latency_ms: finite(p99Ms),
      errors: failureCount,
    })),
  };
}

function tokensJson(tokens: TokenFigures): { readonly [key: string]: Json | undefined } {
  const entries = TOKEN_METRIC_NAMES.filter((name) => tokens.distributions[name].count > 0).map((name) => [
    name,
    statistics(tokens.distributions[name], TOKEN_METRICS[name].unit),
  ]);
  return {
    ...Object.fromEntries(entries),
    output_token_throughput: { unit: "tokens/sec", avg: tokens.outputTokenThroughput },
    request_throughput: { unit: "requests/sec", avg: tokens.requestThroughput },
    benchmark_duration: { unit: "sec", avg: tokens.benchmarkDuration },
    ...(tokens.options.goals.length > 0 && { goodput: { unit: "requests/sec", avg: tokens.goodput } }),
  };
}

function serverJson(server: ServerFigures): Json {
  return {
    model: server.name,
    version: server.version,
    inference_count: server.inferenceCount,
    execution_count: server.executionCount,
    success_count: server.stages.success.count,
    fail_count: server.stages.fail.count,
    cache_hit_count: server.stages.cacheHit.count,
    cache_miss_count: server.stages.cacheMiss.count,
    request_ms: stageMs(server, "success"),
    overhead_ms: overheadMs(server),
    queue_ms: stageMs(server, "queue"),
    compute_input_ms: stageMs(server, "computeInput"),
    compute_infer_ms: stageMs(server, "computeInfer"),
    compute_output_ms: stageMs(server, "computeOutput"),
    batch_sizes: server.batches.map(({ batchSize, count }) => ({ batch_size: batchSize, count })),
    batch_cuts: server.cuts,
    composing_models: server.composing.map(serverJson),
  };
}

function statistics(distribution: Distribution, unit: string): Json {
  if (distribution.count === 0) return { unit };
  return {
    unit,
    avg: distribution.mean,
    min: distribution.min,
    max: distribution.max,
    ...Object.fromEntries(PERCENTILES.map((p) => [`p${p}`, distribution.percentile(p)])),
    std: finite(distribution.deviation),
  };
}

/** Null for a level without a window. */
const timeText = (ms: number): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
