import { countsConcurrency, type LoadLevel, levelValue } from "../load/load-level.js";
import { generatorWarnings, type LevelResult } from "../measure/level-result.js";
import {
  type RequestFigures,
  TOKEN_METRIC_NAMES,
  TOKEN_METRICS,
  type TokenFigures,
} from "../measure/request-figures.js";
import { computeMs, overheadMs, type ServerFigures, stageMs, usesCache } from "../measure/server-watch.js";
import { microseconds, type RunDescription, sixDigits } from "./write-report.js";

/** Percentiles that every report shows. */
const PERCENTILES = [50, 90, 95, 99] as const;

/** The percentiles of a report, with the chosen one in its place. */
export function reportedPercentiles({ percentile }: Pick<RunDescription, "percentile">): number[] {
  return [...new Set([...PERCENTILES, ...(percentile === undefined ? [] : [percentile])])].sort(
    (a, b) => a - b,
  );
}

export function settingsText(run: RunDescription): string {
  const basis =
    run.percentile === undefined
      ? "average latency and throughput"
      : `p${run.percentile} latency and throughput`;
  const lines = [
    "*** Measurement Settings ***",
    `  Batch size: ${run.batchSize}`,
    `  Service Kind: ${run.serviceKind.toUpperCase()}`,
  ];
  if (run.requestCount !== undefined) lines.push(`  Sending a total of ${run.requestCount} requests`);
  else {
    lines.push(
      `  Using "${run.mode}" mode for stabilization`,
      `  Stabilizing using ${basis}`,
      run.mode === "time_windows"
        ? `  Measurement window: ${run.intervalMs} msec`
        : `  Minimum number of samples in each window: ${run.windowRequestCount}`,
    );
  }
  if (run.latencyLimitMs !== undefined) lines.push(`  Latency limit: ${run.latencyLimitMs} msec`);
  if (run.highestLevel > 0) {
    lines.push(
      run.load === "concurrency"
        ? `  Concurrency limit: ${run.highestLevel} concurrent requests`
        : `  Request Rate limit: ${run.highestLevel} requests per seconds`,
    );
  }
  if (run.load === "request_rate") {
    const name = run.distribution === "poisson" ? "poisson" : "uniform";
    lines.push(`  Using ${name} distribution on request generation`);
  }
  if (run.binarySearch) lines.push("  Using Binary Search algorithm");
  lines.push(`  Using ${run.asynchronous ? "asynchronous" : "synchronous"} calls for inference`);
  if (run.decoupled && run.serviceKind !== "openai")
    lines.push("  Detected decoupled model: latency is measured to the last response");
  return `${lines.join("\n")}\n\n`;
}

const CONCURRENCY_TITLES: Readonly<Partial<Record<LoadLevel["mode"], string>>> = {
  periodic_concurrency: "Periodic concurrency",
  session_concurrency: "Session concurrency",
};

function levelTitle({ level, phase }: Pick<LevelResult, "level" | "phase">): string {
  const value = sixDigits(levelValue(level));
  const title = countsConcurrency(level)
    ? `${CONCURRENCY_TITLES[level.mode] ?? "Request concurrency"}: ${value}`
    : `Request Rate: ${value} inference requests per seconds`;
  return phase === undefined ? title : `${title} (${phase})`;
}

export function levelText(result: LevelResult, run: RunDescription, verbose: boolean): string {
  const { figures, server } = result;
  const lines = [levelTitle(result)];
  if (figures.requestCount + figures.failureCount > 0) {
    lines.push("  Client:", ...clientLines(result, run, verbose).map((line) => `    ${line}`));
  }
  if (server !== undefined) lines.push("  Server:", ...consoleServer(server, "    "));
  const remarks = [
    ...faultLines(result, run),
    ...generatorWarnings(result).map((text) => `[WARNING] ${text}`),
  ];
  return `${[...lines, ...remarks].join("\n")}\n\n`;
}

function clientLines({ figures, level }: LevelResult, run: RunDescription, verbose: boolean): string[] {
  const us = (ms: number) => `${microseconds(ms)} usec`;
  const lines = [`Request count: ${figures.requestCount}`];
  if (figures.failureCount > 0) {
    lines.push(`Failed request count: ${figures.failureCount}`);
    for (const [text, count] of figures.failures) lines.push(`  ${count} x ${text}`);
  }
  if (figures.requestCount === 0) return lines;
  if (figures.emptyCount > 0) lines.push(`Requests without a response: ${figures.emptyCount}`);
  if (run.isSequenceModel) {
    lines.push(`Sequence count: ${figures.sequenceCount} (${sixDigits(figures.sequenceThroughput)} seq/sec)`);
  }
  lines.push(`Throughput: ${sixDigits(figures.throughput)} infer/sec`);
  if (run.decoupled) lines.push(`Response Throughput: ${sixDigits(figures.responseThroughput)} infer/sec`);
  if (verbose) lines.push(`Avg client overhead: ${(figures.overhead * 100).toFixed(2)}%`);
  if (run.percentile === undefined) {
    const deviation = us(figures.latency.deviation);
    lines.push(`Avg latency: ${us(figures.latency.mean)} (standard deviation ${deviation})`);
  }
  for (const percentile of reportedPercentiles(run)) {
    lines.push(`p${percentile} latency: ${us(figures.latency.percentile(percentile))}`);
  }
  if (!countsConcurrency(level)) lines.push(fromSendLine(figures));
  lines.push(transportLine(figures, run));
  if (figures.tokens !== undefined) lines.push(...consoleTokens(figures.tokens));
  return lines;
}

/** The latency without the time for which a request was late. */
function fromSendLine({ fromSend }: RequestFigures): string {
  const [p50, p99] = [50, 99].map((percentile) => microseconds(fromSend.percentile(percentile)));
  return `Latency from the actual send: avg ${microseconds(fromSend.mean)} usec, p50 ${p50} usec, p99 ${p99} usec`;
}

function transportLine(figures: RequestFigures, run: RunDescription): string {
  const transfer = microseconds(figures.meanSendMs + figures.meanReceiveMs);
  const total = microseconds(figures.meanSendMs + figures.meanReceiveMs + figures.meanWaitMs);
  const wait = `response wait ${microseconds(figures.meanWaitMs)} usec`;
  if (run.serviceKind === "triton_c_api") {
    return `Avg in-process time: ${total} usec (send/recv ${transfer} usec + ${wait})`;
  }
  return run.protocol === "grpc"
    ? `Avg gRPC time: ${total} usec ((un)marshal request/response ${transfer} usec + ${wait})`
    : `Avg HTTP time: ${total} usec (send/recv ${transfer} usec + ${wait})`;
}

/** Remarks on a level whose figures are not what was asked for. */
function faultLines(
  { fault, interrupted, instability, overLimit }: LevelResult,
  run: RunDescription,
): string[] {
  const lines: string[] = [];
  if (fault !== undefined) lines.push(`[ERROR] ${fault.text}`);
  if (interrupted)
    lines.push("[WARNING] The measurement was interrupted: these are the requests until then.");
  else if (instability === "too few windows" && fault === undefined) {
    lines.push(
      "[WARNING] Failed to obtain stable measurement: 3 windows are needed; use a higher --max-trials.",
    );
  } else if (instability !== undefined && fault === undefined) {
    lines.push(
      `[WARNING] Failed to obtain stable measurement: the ${instability} of the last 3 windows differ by more than ` +
        `${run.stabilityPercentage}%. Use a larger window, or a lower load.`,
    );
  }
  if (overLimit)
    lines.push(`[WARNING] Measured latency went over the set limit of ${run.latencyLimitMs} msec.`);
  return lines;
}

/** The last block: one line for each level. */
export function summaryText(results: readonly LevelResult[], run: RunDescription): string {
  const basis = run.percentile === undefined ? "Average Batch Latency" : `p${run.percentile} Batch Latency`;
  const lines = [`Inferences/Second vs. Client ${basis}`];
  for (const result of results) {
    const { figures, level } = result;
    const name = countsConcurrency(level) ? "Concurrency" : "Request Rate";
    const remark = remarkOf(result);
    lines.push(
      `${name}: ${sixDigits(levelValue(level))}, throughput: ${sixDigits(figures.throughput)} infer/sec, latency ` +
        `${microseconds(figures.latencyAt(run.percentile))} usec${remark === "" ? "" : ` (${remark})`}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** In one word or a few what is wrong with a level; empty for nothing. */
export function remarkOf({ fault, interrupted, instability, overLimit, phase }: LevelResult): string {
  const remarks: string[] = [];
  if (phase !== undefined) remarks.push(phase);
  if (fault !== undefined) remarks.push("failed");
  else if (interrupted) remarks.push("interrupted");
  else if (instability !== undefined) remarks.push("unstable");
  if (overLimit) remarks.push("over the latency limit");
  return remarks.join(", ");
}

/** The server's lines of a level. The models of an ensemble follow in blocks of their own. */
function consoleServer(server: ServerFigures, indent: string): string[] {
  const { stages, composing } = server;
  const us = (ms: number) => `${microseconds(ms)} usec`;
  const stage = (name: Parameters<typeof stageMs>[1]) => us(stageMs(server, name));
  const lines = [`Inference count: ${server.inferenceCount}`, `Execution count: ${server.executionCount}`];
  const hasCache = usesCache(server);
  if (hasCache) {
    lines.push(`Cache hit count: ${stages.cacheHit.count}`, `Cache miss count: ${stages.cacheMiss.count}`);
  }
  lines.push(`Successful request count: ${stages.success.count}`);
  if (stages.fail.count > 0) lines.push(`Failed request count: ${stages.fail.count}`);
  const total = `Avg request latency: ${stage("success")}`;
  const overhead = `overhead ${us(overheadMs(server))} + queue ${stage("queue")}`;
  const compute = computeMs(server);
  if (composing.length > 0) {
    lines.push(`${total} (${overhead} + compute ${us(compute)})`, "", "Composing models:");
    for (const model of composing) {
      lines.push(`${model.name}, version: ${model.version}`, ...consoleServer(model, "    "));
    }
  } else if (hasCache) {
    const cacheMs = stageMs(server, "cacheHit") + stageMs(server, "cacheMiss");
    lines.push(
      `${total} (${overhead} + cache hit/miss ${us(cacheMs)} + compute ${us(compute)})`,
      ...cacheLines(server),
    );
  } else {
    lines.push(
      `${total} (${overhead} + compute input ${stage("computeInput")} + compute infer ${stage("computeInfer")} ` +
        `+ compute output ${stage("computeOutput")})`,
    );
  }
  lines.push(...batchLines(server));
  return lines.map((line) => (line === "" ? "" : indent + line));
}

function cacheLines({ stages }: ServerFigures): string[] {
  const mean = ({ count, ns }: { readonly count: number; readonly ns: number }) =>
    count === 0 ? 0 : microseconds(ns / count / 1e6);
  const { cacheHit, cacheMiss, computeInput, computeInfer, computeOutput } = stages;
  const compute = mean({
    count: computeInfer.count,
    ns: computeInput.ns + computeInfer.ns + computeOutput.ns,
  });
  const miss = mean(cacheMiss);
  return [
    `  Average Cache Hit Latency: ${mean(cacheHit)} usec`,
    `  Average Cache Miss Latency: ${miss + compute} usec (cache lookup/insertion ${miss} usec + compute ${compute} usec)`,
  ];
}

/** Batch sizes, and why batches were cut, where the server tells. */
function batchLines({ batches, cuts }: ServerFigures): string[] {
  const lines: string[] = [];
  if (batches.length > 0) {
    const executions = batches.reduce((sum, { count }) => sum + count, 0);
    const rows = batches.reduce((sum, { batchSize, count }) => sum + batchSize * count, 0);
    const sizes = batches.map(({ batchSize, count }) => `${batchSize} (${count}x)`).join(", ");
    lines.push(`Batch sizes: ${sizes}; avg ${Number((rows / executions).toPrecision(3))}`);
  }
  if (cuts !== undefined) {
    const reasons = Object.entries(cuts).sort(([, a], [, b]) => b - a);
    lines.push(`Batches cut by: ${reasons.map(([reason, count]) => `${reason} (${count}x)`).join(", ")}`);
  }
  return lines;
}

const round = (value: number) => Number(value.toFixed(2));

function consoleTokens(tokens: TokenFigures): string[] {
  const lines: string[] = [];
  for (const name of TOKEN_METRIC_NAMES) {
    const distribution = tokens.distributions[name];
    if (distribution.count === 0) continue;
    const { title, unit } = TOKEN_METRICS[name];
    const [p50, p90, p99] = [50, 90, 99].map((percentile) => round(distribution.percentile(percentile)));
    lines.push(`${title} (${unit}): avg ${round(distribution.mean)}, p50 ${p50}, p90 ${p90}, p99 ${p99}`);
  }
  lines.push(`Output Token Throughput (tokens/sec): ${round(tokens.outputTokenThroughput)}`);
  if (tokens.options.goals.length > 0) {
    const share = tokens.requestCount === 0 ? 0 : (tokens.goodCount / tokens.requestCount) * 100;
    const goals = tokens.options.goals.map(({ metric, value }) => `${metric}:${value}`).join(" ");
    lines.push(
      `Goodput (requests/sec): ${round(tokens.goodput)}; ${round(share)}% of the requests met ${goals}`,
    );
  }
  return lines;
}
