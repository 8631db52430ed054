import type { LoadLevel } from "../../src/load/load-level.js";
import type { LevelResult } from "../../src/measure/level-result.js";
import { RequestFigures } from "../../src/measure/request-figures.js";
import type { ServerFigures } from "../../src/measure/server-watch.js";
import { SERVER_STAGES } from "../../src/measure/server-watch.js";
import type { RunDescription } from "../../src/report/write-report.js";
import { type RequestRow, windowOf } from "./request-rows.js";

/** perf_analyzer's defaults. */
export const RUN: RunDescription = {
  serviceKind: "triton",
  model: "m",
  version: "",
  url: "localhost:8000",
  protocol: "http",
  batchSize: 1,
  mode: "time_windows",
  intervalMs: 5000,
  windowRequestCount: 50,
  stabilityPercentage: 10,
  load: "concurrency",
  highestLevel: 4,
  binarySearch: false,
  asynchronous: false,
  streaming: false,
  decoupled: false,
  isSequenceModel: false,
  command: "tritonjs perf -m m",
  toolVersion: "1.2.3",
};

/** A level with one window of a second. */
export function levelOf(
  level: LoadLevel,
  rows: readonly RequestRow[],
  rest: Partial<LevelResult> = {},
  tokens = false,
): LevelResult {
  const figures = new RequestFigures({
    batchSize: 1,
    ...(tokens && { tokens: { streaming: true, goals: [{ metric: "time_to_first_token", value: 100 }] } }),
  });
  const window = windowOf(0, 1000, rows);
  figures.addWindow(window);
  const moment = {
    start: 0,
    end: 1000,
    throughput: figures.throughput,
    requestCount: figures.requestCount,
    failureCount: figures.failureCount,
    meanMs: figures.latency.mean,
    p50Ms: figures.latency.percentile(50),
    p99Ms: figures.latency.percentile(99),
  };
  return { level, figures, overLimit: false, interrupted: false, timeline: [moment], trials: 1, ...rest };
}

/** `count` requests of a latency of 10 ms: 1 ms to send, 7 ms to wait, 2 ms to receive. */
export function requests(count: number, endMs = 10): RequestRow[] {
  return Array.from({ length: count }, () => ({ sent: 0, sendEnd: 1, firstResponse: endMs - 2, end: endMs }));
}

/** A server that took 6 ms for each request. */
export function serverOf(count: number, rest: Partial<ServerFigures> = {}): ServerFigures {
  const ms: Partial<Record<(typeof SERVER_STAGES)[number], number>> = {
    success: 6,
    queue: 1,
    computeInput: 0.5,
    computeInfer: 3,
    computeOutput: 0.25,
  };
  return {
    name: "m",
    version: "1",
    inferenceCount: count,
    executionCount: count / 4,
    stages: Object.fromEntries(
      SERVER_STAGES.map((stage) => {
        const time = ms[stage];
        return [stage, time === undefined ? { count: 0, ns: 0 } : { count, ns: time * 1e6 * count }];
      }),
    ) as ServerFigures["stages"],
    batches: [{ batchSize: 4, count: count / 4 }],
    composing: [],
    ...rest,
  };
}

export const concurrency = (value: number) => ({ mode: "concurrency", value }) as const;
