import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { type CandidateResult, variantName } from "../candidate-result.js";
import type { AnalyzeLevel, LevelRun } from "../figures.js";
import type { AnalyzeMachine, OpenedCandidate } from "../machine.js";
import { type Candidate, isDefault, variantConfig } from "../variant-parameters.js";
import { checkRepository, linkModel, linkRepository } from "./linked-repository.js";
import { checkData, measureModels, type RealMeasuring } from "./measured-level.js";

/** Models of a repository, loaded in this process with one configuration after the other. */
export class RepositoryMachine implements AnalyzeMachine {
  readonly configs: Readonly<Record<string, ModelConfig>>;
  readonly loaded: readonly string[];
  readonly batchSize: number;
  readonly #repository: string;
  readonly #measuring: RealMeasuring;
  /** Configurations of loaded ensembles, by name. */
  readonly #ensembles: Readonly<Record<string, ModelConfig>>;

  private constructor(
    repository: string,
    loaded: readonly string[],
    configs: Readonly<Record<string, ModelConfig>>,
    ensembles: Readonly<Record<string, ModelConfig>>,
    measuring: RealMeasuring,
  ) {
    this.#repository = repository;
    this.loaded = loaded;
    this.configs = configs;
    this.#ensembles = ensembles;
    this.#measuring = measuring;
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
    const { folder, remove } = await linkRepository(this.#repository, changed);
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
      await linkModel(join(this.#repository, model), join(folder, name), { ...config, name });
    };
    for (const [model, parameters] of Object.entries(candidate)) {
      await write(model, variantConfig(this.configs[model]!, parameters));
    }
    for (const [model, config] of Object.entries(this.#ensembles)) {
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
    const run = await measureModels(triton, this.loaded, level, this.#measuring, signal, share);
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

async function loadModels(modelRepository: string, models: readonly string[]): Promise<Triton> {
  const triton = new Triton({
    modelRepository,
    modelControlMode: "explicit",
    loadModel: [...models],
    logWarning: false,
    logError: false,
  });
  try {
    await triton.ready();
  } catch (error) {
    await triton.close();
    throw error;
  }
  return triton;
}
