import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { copyFile, link, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ModelOptions, Triton } from "@tritonjs/core";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { writePrototxt } from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import { cleanUpAtExit } from "../command/exit-cleanups.js";
import { repositoryServer } from "../command/repository-server.js";
import type { DataOptions } from "../data/data-set.js";
import { loadDataSet } from "../data/load-data-set.js";
import { type LoadGenerator, startLoadGenerator } from "../load/load-generator.js";
import type { LoadLevel } from "../load/load-level.js";
import type { LevelResult } from "../measure/level-result.js";
import { type MeasureOptions, measureLevel, processClock } from "../measure/measure-level.js";
import { CallsView, ServerWatch } from "../measure/server-watch.js";
import { importOf, readyOrClosed } from "../perf/open-target.js";
import { readModel, serverCallsOf } from "../target/read-model.js";
import {
  type AnalyzeLevel,
  type AnalyzeMachine,
  type Candidate,
  type CandidateResult,
  isDefault,
  type LevelRun,
  type ModelRun,
  type OpenedCandidate,
  type VariantParameters,
  variantConfig,
  variantName,
} from "./candidate.js";
import { spreadOf } from "./run-candidate.js";

/** Models that run in this process. */
abstract class ServedMachine implements AnalyzeMachine {
  readonly batchSize: number;

  constructor(
    readonly configs: Readonly<Record<string, ModelConfig>>,
    readonly loaded: readonly string[],
    protected readonly measuring: RealMeasuring,
  ) {
    this.batchSize = measuring.options.batchSize;
  }

  get wholeMs(): number | undefined {
    const { mode, intervalMs, requestCount } = this.measuring.options;
    return mode === "time_windows" && requestCount === undefined ? 3 * intervalMs : undefined;
  }

  abstract open(candidate: Candidate): Promise<OpenedCandidate>;
  abstract writeVariants(result: CandidateResult, folder: string): Promise<void>;

  async close(): Promise<void> {}
}

/** Models of a repository, loaded in this process with one configuration after the other. */
export class RepositoryMachine extends ServedMachine {
  private constructor(
    private readonly repository: string,
    loaded: readonly string[],
    configs: Readonly<Record<string, ModelConfig>>,
    private readonly ensembles: Readonly<Record<string, ModelConfig>>,
    measuring: RealMeasuring,
  ) {
    super(configs, loaded, measuring);
  }

  get leastBatchSizes(): Readonly<Record<string, number>> {
    const sizes: Record<string, number> = {};
    for (const { maxBatchSize, ensembleScheduling } of Object.values(this.ensembles)) {
      for (const { modelName } of ensembleScheduling!.step)
        sizes[modelName] = Math.max(sizes[modelName] ?? 0, maxBatchSize);
    }
    return sizes;
  }

  /**
   * Loads the models with their default configurations, to learn these. The steps of an ensemble are tuned in its place.
   *
   * @throws TritonError INVALID_ARG for a repository that is not a folder and for data that does not fit, NOT_FOUND for
   * an unknown model, and the errors of loading
   */
  static async open(
    repository: string,
    models: readonly string[],
    measuring: RealMeasuring,
  ): Promise<RepositoryMachine> {
    await checkRepository(repository, models);
    const triton = await loadModels(repository, models);
    try {
      const configs: Record<string, ModelConfig> = {};
      const ensembles: Record<string, ModelConfig> = {};
      const add = (name: string) => {
        const config = serviceOf(triton).modelConfig(name, "");
        const steps = config.ensembleScheduling?.step;
        if (steps === undefined) configs[name] = config;
        else {
          ensembles[name] = config;
          for (const step of steps) add(step.modelName);
        }
      };
      for (const name of models) add(name);
      await checkData(triton, models, measuring);
      return new RepositoryMachine(repository, models, configs, ensembles, measuring);
    } finally {
      await triton.close();
    }
  }

  async open(candidate: Candidate): Promise<OpenedCandidate> {
    const changed = Object.fromEntries(
      Object.entries(candidate)
        .filter(([, parameters]) => !isDefault(parameters))
        .map(([model, parameters]) => [model, variantConfig(this.configs[model]!, parameters)]),
    );
    const { folder, remove } = await linkRepository(this.repository, changed);
    try {
      const triton = await loadModels(folder, this.loaded);
      return {
        measure: (level, signal, share) => this.#measure(triton, level, signal, share),
        close: async () => {
          await triton.close();
          await remove();
        },
      };
    } catch (error) {
      await remove();
      throw error;
    }
  }

  /** Ensembles name the variants of their steps. */
  async writeVariants({ candidate, number }: CandidateResult, folder: string): Promise<void> {
    const write = async (model: string, config: ModelConfig) => {
      const name = variantName(model, number);
      await rm(join(folder, name), { recursive: true, force: true });
      await linkModel(join(this.repository, model), join(folder, name), { ...config, name });
    };
    for (const [model, parameters] of Object.entries(candidate)) {
      await write(model, variantConfig(this.configs[model]!, parameters));
    }
    for (const [model, config] of Object.entries(this.ensembles)) {
      const step = config.ensembleScheduling!.step.map((one) => ({
        ...one,
        modelName: variantName(one.modelName, number),
      }));
      await write(model, { ...config, ensembleScheduling: { ...config.ensembleScheduling!, step } });
    }
  }

  async #measure(
    triton: Triton,
    level: AnalyzeLevel,
    signal: AbortSignal,
    share: number | undefined,
  ): Promise<LevelRun> {
    const run = await measureModels(triton, this.loaded, level, this.measuring, signal, share);
    for (const [model, { figures, failureText }] of Object.entries(run.models)) {
      if (figures.perf_throughput > 0 || signal.aborted) continue;
      throw new TritonError(
        "INTERNAL",
        `model '${model}': expected answers, got none: ${failureText ?? "no request ended"}`,
      );
    }
    return run;
  }
}

function loadModels(modelRepository: string, models: readonly string[]): Promise<Triton> {
  const options = { modelRepository, modelControlMode: "explicit", loadModel: [...models] } as const;
  return readyOrClosed(repositoryServer(options, { logWarning: false, logError: false }));
}

const CONFIG_FILE = "config.pbtxt";

/**
 * Makes a repository with the models of another one and other configurations. Files are hard links where the file
 * system allows it, so that large models are not copied.
 */
async function linkRepository(
  repository: string,
  configs: Readonly<Record<string, ModelConfig>>,
): Promise<{ readonly folder: string; remove(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-analyze-"));
  const forget = cleanUpAtExit(() => rmSync(folder, { recursive: true, force: true }));
  const remove = async () => {
    await rm(folder, { recursive: true, force: true });
    forget();
  };
  try {
    for (const entry of await readdir(repository)) {
      const path = join(repository, entry);
      if ((await stat(path)).isDirectory()) await linkModel(path, join(folder, entry), configs[entry]);
    }
  } catch (error) {
    await remove();
    throw error;
  }
  return { folder, remove };
}

/** Makes a model folder with the files of another one, and a configuration of its own if there is one. */
async function linkModel(from: string, to: string, config: ModelConfig | undefined): Promise<void> {
  await linkFolder(from, to, config === undefined ? undefined : CONFIG_FILE);
  if (config !== undefined)
    await writeFile(join(to, CONFIG_FILE), writePrototxt(withoutPinnedMemory(config)));
}

/**
 * Leaves out the pinned memory, which the completion of a configuration sets to the value that a server assumes anyway.
 * A server without GPU would warn about it.
 */
export function withoutPinnedMemory(config: ModelConfig): ModelConfig {
  if (config.optimization === undefined) return config;
  const { inputPinnedMemory: input, outputPinnedMemory: output, ...others } = config.optimization;
  const optimization = {
    ...others,
    ...(input?.enable === false && { inputPinnedMemory: input }),
    ...(output?.enable === false && { outputPinnedMemory: output }),
  };
  return { ...config, optimization };
}

/** @param without name of an entry that is left out */
export async function linkFolder(from: string, to: string, without?: string): Promise<void> {
  // At once, so that no folder appears after the cleanup of a process that ends.
  mkdirSync(to, { recursive: true });
  for (const name of await readdir(from)) {
    if (name === without) continue;
    const [source, target] = [join(from, name), join(to, name)];
    if ((await stat(source)).isDirectory()) await linkFolder(source, target);
    else await link(source, target).catch(() => copyFile(source, target));
  }
}

/** Checks that a repository is a folder with these models. */
async function checkRepository(path: string, models: readonly string[]): Promise<void> {
  const names = await readdir(path).catch((error: Error) => {
    throw new TritonError(
      "INVALID_ARG",
      `--model-repository: expected a folder of this machine, got '${path}': ${error.message}`,
    );
  });
  const missing = models.find((model) => !names.includes(model));
  if (missing === undefined) return;
  throw new TritonError(
    "NOT_FOUND",
    `-m: expected a model of the repository '${path}' (${names.toSorted().join(", ") || "it is empty"}), got '${missing}'`,
  );
}

/** Options of `bind` that a variant changes. A program spreads them over its own. */
export type BoundVariant = Pick<ModelOptions, "maxBatchSize" | "batcher" | "instanceGroup">;

/** Makes the `Triton` of a program, with the changed options of each model by name. */
export type CreateTriton = (configs: Readonly<Record<string, BoundVariant>>) => Triton | Promise<Triton>;

/** Parameters that the options of `bind` do not have for all models. */
const FIXED = ["isolation", "threads"] as const;

/** Bound models of a module that makes its `Triton` in a function, so that it can be made for each variant. */
export class ModuleMachine extends ServedMachine {
  readonly fixed = FIXED;

  private constructor(
    private readonly create: CreateTriton,
    configs: Readonly<Record<string, ModelConfig>>,
    measuring: RealMeasuring,
  ) {
    super(configs, Object.keys(configs), measuring);
  }

  static async open(
    path: string,
    models: readonly string[],
    measuring: RealMeasuring,
  ): Promise<ModuleMachine> {
    const create = await importCreate(resolve(path));
    const triton = await readyOrClosed(create({}));
    try {
      const configs = models.map((name) => [name, serviceOf(triton).modelConfig(name, "")] as const);
      await checkData(triton, models, measuring);
      return new ModuleMachine(create, Object.fromEntries(configs), measuring);
    } finally {
      await triton.close();
    }
  }

  async open(candidate: Candidate): Promise<OpenedCandidate> {
    const triton = await readyOrClosed(this.create(boundVariants(candidate)));
    return {
      measure: (level, signal, share) =>
        measureModels(triton, this.loaded, level, this.measuring, signal, share),
      close: () => triton.close(),
    };
  }

  async writeVariants({ candidate, number }: CandidateResult, folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    for (const [model, parameters] of Object.entries(candidate)) {
      const file = join(folder, `${variantName(model, number)}.json`);
      await writeFile(file, `${JSON.stringify(boundVariant(parameters), undefined, 2)}\n`);
    }
  }
}

function boundVariants(candidate: Candidate): Record<string, BoundVariant> {
  return Object.fromEntries(
    Object.entries(candidate)
      .filter(([, parameters]) => !isDefault(parameters))
      .map(([model, parameters]) => [model, boundVariant(parameters)]),
  );
}

function boundVariant(parameters: VariantParameters): BoundVariant {
  const {
    instances,
    maxBatchSize,
    queueDelayMicroseconds,
    preferredBatchSizes,
    targetLatencyMs,
    deadlineMs,
  } = parameters;
  const batcher = {
    ...(queueDelayMicroseconds !== undefined && { maxQueueDelayMicroseconds: queueDelayMicroseconds }),
    ...(preferredBatchSizes?.length && { preferredBatchSize: preferredBatchSizes }),
    ...(targetLatencyMs !== undefined && targetLatencyMs > 0 && { targetLatencyMs }),
    ...(deadlineMs !== undefined && deadlineMs > 0 && { deadlines: { defaultMs: deadlineMs } }),
  };
  return {
    ...(maxBatchSize !== undefined && { maxBatchSize }),
    ...(Object.keys(batcher).length > 0 && { batcher }),
    ...(instances !== undefined && { instanceGroup: { count: instances } }),
  };
}

function importCreate(path: string): Promise<CreateTriton> {
  const isFunction = (value: unknown): value is CreateTriton => typeof value === "function";
  return importOf(path, "createTriton", isFunction, "a function createTriton(configs) that returns a Triton");
}

export interface RealMeasuring {
  readonly options: MeasureOptions;
  readonly data: DataOptions;
  readonly seed: number;
  /** Also takes the processor time of a request; the requests in flight then end before a level does. @default false */
  readonly takesCpu?: boolean;
}

/**
 * Checks that requests can be made for the models. A batch of the load may be larger than the models take now, because
 * variants take larger ones.
 */
async function checkData(
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
async function measureModels(
  triton: Triton,
  names: readonly string[],
  level: AnalyzeLevel,
  { options: whole, data: dataOptions, seed, takesCpu = false }: RealMeasuring,
  signal: AbortSignal,
  share?: number,
): Promise<LevelRun> {
  const longestIntervalMs = Math.max(3 * whole.intervalMs, PATIENCE_MS);
  const options = { ...(share === undefined ? whole : partOf(whole, share)), longestIntervalMs };
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
    // A turn warms up by its share too: the first one has warmed the program.
    const warmupRequestCount = Math.ceil((share ?? 1) * options.warmupRequestCount);
    const loadLevel = toLoadLevel(level);
    await Promise.all(
      sessions.map(({ generator }) =>
        warmupRequestCount > 0 ? generator.run(WARM_UP, warmupRequestCount) : undefined,
      ),
    );
    const begin = process.cpuUsage();
    const results = await Promise.all(sessions.map((session) => measureLevel(session, loadLevel)));
    const cpu = takesCpu && !signal.aborted && (await cpuOf(results, generators, begin));
    const models = Object.fromEntries(names.map((name, i) => [name, modelRunOf(results[i]!, memory)]));
    return { level, models, ...cpu, ...windowSpread(results) };
  } finally {
    await Promise.all(generators.map((generator) => generator.close()));
  }
}

/** Processor time since `begin`, and the requests that it served: also those that the last window cut, which end first. */
async function cpuOf(
  results: readonly LevelResult[],
  generators: readonly LoadGenerator[],
  begin: NodeJS.CpuUsage,
): Promise<Pick<LevelRun, "cpu">> {
  const rest = await Promise.all(generators.map((generator) => generator.pause()));
  const { user, system } = process.cpuUsage(begin);
  const counts = results.map(({ figures }, i) => {
    return figures.requestCount + figures.failureCount + rest[i]!.records.count;
  });
  return { cpu: { ms: (user + system) / 1000, requests: counts.reduce((sum, count) => sum + count, 0) } };
}

/** Windows of a level that are compared for its noise: those whose figures count. */
const COMPARED_WINDOWS = 3;

/** Spread of the model that varied most between its last windows; none for a measurement of one window. */
function windowSpread(results: readonly LevelResult[]): Pick<LevelRun, "spread"> {
  const spreads = results.flatMap(({ timeline }) => {
    const last = timeline.slice(-COMPARED_WINDOWS).map(({ throughput }) => throughput);
    return last.length < COMPARED_WINDOWS ? [] : [spreadOf(last)];
  });
  return spreads.length === 0 ? {} : { spread: Math.max(...spreads) };
}

/**
 * A window in which a model answers nothing goes on for three windows, and at least for this long. A busy machine stops a
 * program for longer than a short window.
 */
const PATIENCE_MS = 5000;

/** One window with this share of the time or the requests of three. */
function partOf(options: MeasureOptions, share: number): MeasureOptions {
  const { requestCount } = options;
  return {
    ...options,
    maxTrials: 1,
    intervalMs: 3 * share * options.intervalMs,
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
    medianMs: figures.latency.percentile(50),
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
