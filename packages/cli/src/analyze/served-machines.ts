import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { copyFile, link, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type ModelOptions, Triton } from "@tritonjs/core";
import { writePrototxt } from "@tritonjs/core/config";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { cleanUpAtExit } from "../exit-cleanups.js";
import { importOf, readyOrClosed } from "../perf/open-target.js";
import type { AnalyzeLevel, LevelRun } from "./goal.js";
import { type AnalyzeMachine, type CandidateResult, type OpenedCandidate, variantName } from "./machine.js";
import { checkData, measureModels, type RealMeasuring } from "./measured-level.js";
import { type Candidate, isDefault, type VariantParameters, variantConfig } from "./variant-parameters.js";

/** Models of a repository, loaded in this process with one configuration after the other. */
export class RepositoryMachine implements AnalyzeMachine {
  readonly batchSize: number;

  private constructor(
    private readonly repository: string,
    readonly loaded: readonly string[],
    readonly configs: Readonly<Record<string, ModelConfig>>,
    private readonly ensembles: Readonly<Record<string, ModelConfig>>,
    private readonly measuring: RealMeasuring,
  ) {
    this.batchSize = measuring.options.batchSize;
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
        const config = triton.service.modelConfig(name, "");
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

  async close(): Promise<void> {}

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
  return readyOrClosed(new Triton({ ...options, logWarning: false, logError: false }));
}

const CONFIG_FILE = "config.pbtxt";

/**
 * Makes a repository with the models of another one and other configurations. Files are hard links where the file
 * system allows it, so that large models are not copied.
 *
 * @param configs configurations of the models that differ, by name
 * @returns the folder, and a function that removes it
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
function withoutPinnedMemory(config: ModelConfig): ModelConfig {
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
async function linkFolder(from: string, to: string, without?: string): Promise<void> {
  // At once, so that no folder appears after the cleanup of a process that ends.
  mkdirSync(to, { recursive: true });
  for (const name of await readdir(from)) {
    if (name === without) continue;
    const [source, target] = [join(from, name), join(to, name)];
    if ((await stat(source)).isDirectory()) await linkFolder(source, target);
    else await link(source, target).catch(() => copyFile(source, target));
  }
}

/**
 * Checks that a repository is a folder with these models.
 *
 * @throws TritonError INVALID_ARG for another path, NOT_FOUND for a model that it does not have
 */
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
export class ModuleMachine implements AnalyzeMachine {
  readonly loaded: readonly string[];
  readonly batchSize: number;
  readonly fixed = FIXED;

  private constructor(
    private readonly create: CreateTriton,
    readonly configs: Readonly<Record<string, ModelConfig>>,
    private readonly measuring: RealMeasuring,
  ) {
    this.loaded = Object.keys(configs);
    this.batchSize = measuring.options.batchSize;
  }

  /**
   * @throws TritonError INVALID_ARG for a module without `createTriton` and for data that does not fit, NOT_FOUND for an
   * unknown model
   */
  static async open(
    path: string,
    models: readonly string[],
    measuring: RealMeasuring,
  ): Promise<ModuleMachine> {
    const create = await importCreate(resolve(path));
    const triton = await readyOrClosed(await create({}));
    try {
      const configs = models.map((name) => [name, triton.service.modelConfig(name, "")] as const);
      await checkData(triton, models, measuring);
      return new ModuleMachine(create, Object.fromEntries(configs), measuring);
    } finally {
      await triton.close();
    }
  }

  async open(candidate: Candidate): Promise<OpenedCandidate> {
    const triton = await readyOrClosed(await this.create(boundVariants(candidate)));
    return {
      measure: (level, signal, share) =>
        measureModels(triton, this.loaded, level, this.measuring, signal, share),
      close: () => triton.close(),
    };
  }

  async close(): Promise<void> {}

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
  const { instances, maxBatchSize, queueDelayMicroseconds, preferredBatchSizes, targetLatencyMs } =
    parameters;
  const batcher = {
    ...(queueDelayMicroseconds !== undefined && { maxQueueDelayMicroseconds: queueDelayMicroseconds }),
    ...(preferredBatchSizes?.length && { preferredBatchSize: preferredBatchSizes }),
    ...(targetLatencyMs !== undefined && targetLatencyMs > 0 && { targetLatencyMs }),
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
