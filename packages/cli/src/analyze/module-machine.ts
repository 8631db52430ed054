import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ModelOptions, Triton } from "@tritonjs/core";
import type { ModelConfig } from "@tritonjs/protocol";
import { invalidOption } from "../tool-errors.js";
import { type AnalyzeMachine, type CandidateResult, type OpenedCandidate, variantName } from "./machine.js";
import { checkData, measureModels, type RealMeasuring } from "./measured-level.js";
import { type Candidate, isDefault, type VariantParameters } from "./variant-parameters.js";

/** Options of `bind` that a variant changes. A program spreads them over its own. */
export type BoundVariant = Pick<ModelOptions, "maxBatchSize" | "batcher" | "instanceGroup">;

/** Makes the `Triton` of a program, with the changed options of each model by name. */
export type CreateTriton = (configs: Readonly<Record<string, BoundVariant>>) => Triton | Promise<Triton>;

/** Parameters that the options of `bind` do not have for all models. */
const FIXED = ["isolation", "threads"] as const;

/** Bound models of a module that makes its `Triton` in a function, so that it can be made for each variant. */
export class ModuleMachine implements AnalyzeMachine {
  readonly configs: Readonly<Record<string, ModelConfig>>;
  readonly loaded: readonly string[];
  readonly batchSize: number;
  readonly fixed = FIXED;
  readonly #create: CreateTriton;
  readonly #measuring: RealMeasuring;

  private constructor(
    create: CreateTriton,
    configs: Readonly<Record<string, ModelConfig>>,
    measuring: RealMeasuring,
  ) {
    this.#create = create;
    this.configs = configs;
    this.loaded = Object.keys(configs);
    this.#measuring = measuring;
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
    const triton = await opened(create, {});
    try {
      const configs = models.map((name) => [name, triton.service.modelConfig(name, "")] as const);
      await checkData(triton, models, measuring);
      return new ModuleMachine(create, Object.fromEntries(configs), measuring);
    } finally {
      await triton.close();
    }
  }

  async open(candidate: Candidate): Promise<OpenedCandidate> {
    const triton = await opened(this.#create, boundVariants(candidate));
    return {
      measure: (level, signal, share) =>
        measureModels(triton, this.loaded, level, this.#measuring, signal, share),
      close: () => triton.close(),
    };
  }

  async close(): Promise<void> {}

  /** Writes the options of `bind` as JSON. */
  async writeVariants({ candidate, number }: CandidateResult, folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    for (const [model, parameters] of Object.entries(candidate)) {
      const file = join(folder, `${variantName(model, number)}.json`);
      await writeFile(file, `${JSON.stringify(boundVariant(parameters), undefined, 2)}\n`);
    }
  }
}

async function opened(create: CreateTriton, variants: Record<string, BoundVariant>): Promise<Triton> {
  const triton = await create(variants);
  try {
    await triton.ready();
  } catch (error) {
    await triton.close();
    throw error;
  }
  return triton;
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

async function importCreate(path: string): Promise<CreateTriton> {
  if (!existsSync(path)) throw invalidOption(`--module: expected a file, '${path}' does not exist`);
  const exported = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  const create = [exported.createTriton, exported.default].find((one) => typeof one === "function");
  if (create !== undefined) return create as CreateTriton;
  const names = Object.keys(exported).join(", ") || "no exports";
  throw invalidOption(
    `--module: expected '${path}' to export a function createTriton(configs) that returns a Triton, got ${names}`,
  );
}
