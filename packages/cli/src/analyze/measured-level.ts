import { readdirSync, readFileSync } from "node:fs";
import type { Triton } from "@tritonjs/core";
import type { DataOptions } from "../data/data-set.js";
import { loadDataSet } from "../data/load-data-set.js";
import { type LoadGenerator, startLoadGenerator } from "../load/load-generator.js";
import type { LoadLevel } from "../load/load-level.js";
import type { LevelResult } from "../measure/level-result.js";
import { type MeasureOptions, measureLevel, processClock } from "../measure/measure-level.js";
import { CallsView, ServerWatch } from "../measure/server-watch.js";
import { readModel, serverCallsOf } from "../target/read-model.js";
import type { AnalyzeLevel, LevelRun, ModelRun } from "./goal.js";

export interface RealMeasuring {
  readonly options: MeasureOptions;
  readonly data: DataOptions;
  readonly seed: number;
}

/**
 * Checks that requests can be made for the models. A batch of the load may be larger than the models take now, because
 * variants take larger ones.
 *
 * @throws TritonError INVALID_ARG for shapes and data that do not fit
 */
export async function checkData(
  triton: Triton,
  names: readonly string[],
  { options: { batchSize }, data }: RealMeasuring,
): Promise<void> {
  for (const modelName of names) {
    const model = await readModel({ kind: "in-process", modelName, source: { triton } });
    const maxBatchSize = model.maxBatchSize === 0 ? 0 : Math.max(model.maxBatchSize, batchSize);
    await loadDataSet({ ...model, maxBatchSize }, data);
  }
}

/** Measures a level on all models at the same time, for a share of three windows if it is given. */
export async function measureModels(
  triton: Triton,
  names: readonly string[],
  level: AnalyzeLevel,
  { options: whole, data: dataOptions, seed }: RealMeasuring,
  signal: AbortSignal,
  share?: number,
): Promise<LevelRun> {
  const options = share === undefined ? whole : partOf(whole, share);
  const generators: LoadGenerator[] = [];
  let memory = residentMegabytes();
  const onMoment = () => {
    memory = Math.max(memory, residentMegabytes());
  };
  try {
    const sessions = [];
    for (const modelName of names) {
      const target = { kind: "in-process", modelName, source: { triton } } as const;
      const data = await loadDataSet(await readModel(target), dataOptions);
      const generator = await startLoadGenerator(target, data, { seed });
      generators.push(generator);
      const server = await ServerWatch.open(new CallsView(serverCallsOf(target)), {
        name: modelName,
        version: "",
      });
      sessions.push({
        generator,
        clock: processClock,
        options,
        ...(server !== undefined && { server }),
        observer: { onMoment },
        signal,
      });
    }
    const { warmupRequestCount } = options;
    const loadLevel = toLoadLevel(level);
    await Promise.all(
      sessions.map(({ generator }) =>
        warmupRequestCount > 0 ? generator.run(WARM_UP, warmupRequestCount) : undefined,
      ),
    );
    const results = await Promise.all(sessions.map((session) => measureLevel(session, loadLevel)));
    const models = Object.fromEntries(names.map((name, i) => [name, modelRunOf(results[i]!, memory)]));
    return { level, models };
  } finally {
    await Promise.all(generators.map((generator) => generator.close()));
  }
}

/**
 * One window with this share of the time or the requests of three. A window in which a slow model answers nothing goes
 * on for as long as all three.
 */
function partOf(options: MeasureOptions, share: number): MeasureOptions {
  const { requestCount } = options;
  return {
    ...options,
    maxTrials: 1,
    intervalMs: 3 * share * options.intervalMs,
    longestIntervalMs: 3 * options.intervalMs,
    windowRequestCount: Math.ceil(3 * share * options.windowRequestCount),
    ...(requestCount !== undefined && { requestCount: Math.ceil(share * requestCount) }),
  };
}

const WARM_UP: LoadLevel = { mode: "concurrency", value: 1 };

function toLoadLevel({ mode, value, distribution = "constant" }: AnalyzeLevel): LoadLevel {
  return mode === "concurrency" ? { mode, value } : { mode, value, distribution };
}

function modelRunOf({ figures, server, fault }: LevelResult, memory: number): ModelRun {
  const [failureText] = figures.failures.keys();
  const seconds = figures.durationMs / 1000;
  const text = fault?.text ?? failureText;
  return {
    figures: {
      perf_throughput: figures.throughput,
      perf_latency_avg: figures.latency.mean,
      perf_latency_p90: figures.latency.percentile(90),
      perf_latency_p95: figures.latency.percentile(95),
      perf_latency_p99: figures.latency.percentile(99),
      cpu_used_ram: memory,
    },
    ...(server !== undefined &&
      server.executionCount > 0 &&
      seconds > 0 && {
        meanRows: server.inferenceCount / server.executionCount,
        batchesPerSecond: server.executionCount / seconds,
      }),
    failures: figures.failureCount,
    ...(text !== undefined && { failureText: text }),
  };
}

const MEGABYTE = 1e6;

/** Resident memory of this process in megabytes. On Linux, that of its child processes is included. */
function residentMegabytes(): number {
  return (process.memoryUsage.rss() + childBytes(process.pid)) / MEGABYTE;
}

function childBytes(pid: number): number {
  if (process.platform !== "linux") return 0;
  let sum = 0;
  try {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const children = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean);
      for (const child of children) sum += bytesOf(child) + childBytes(Number(child));
    }
  } catch {
    // A process may end while it is read.
  }
  return sum;
}

function bytesOf(pid: string): number {
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}
