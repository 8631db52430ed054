import { type ModelConfig, type TensorSpec, toConfigDataType } from "@tritonjs/protocol";
import {
  DEFAULT_MAX_BATCH_SIZE,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
} from "../schema/defaults.js";
import { ENSEMBLE_PLATFORM } from "../validation/validate-ensemble.js";
import type { EnsembleOptions, EnsembleStep } from "./ensemble-options.js";

/** What `bindEnsemble` knows about an ensemble. */
export interface ResolveEnsembleInput {
  readonly modelName: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly steps: readonly EnsembleStep[];
  readonly options: EnsembleOptions;
  /** Fields of Triton's message; they win. */
  readonly overrides?: Partial<ModelConfig>;
}

/** Turns specifications, steps and options into the one form of a configuration. Checks nothing. */
export function resolveEnsemble(source: ResolveEnsembleInput): ModelConfig {
  const { modelName: name, options } = source;
  const { optimization: _, ...empty } = emptyModelConfig();
  const config: ModelConfig = {
    ...empty,
    name,
    platform: ENSEMBLE_PLATFORM,
    maxBatchSize: options.batching === false ? 0 : (options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE),
    input: source.inputs.map((spec) => ({
      ...emptyModelInput(),
      name: spec.name,
      dataType: toConfigDataType(spec.dtype),
      dims: [...spec.shape],
      optional: spec.optional ?? false,
    })),
    output: source.outputs.map((spec) => ({
      ...emptyModelOutput(),
      name: spec.name,
      dataType: toConfigDataType(spec.dtype),
      dims: [...spec.shape],
    })),
    ensembleScheduling: {
      step: source.steps.map((step) => ({
        modelName: step.modelName,
        modelVersion: step.modelVersion ?? -1,
        inputMap: { ...step.inputMap },
        outputMap: { ...step.outputMap },
        modelNamespace: "",
      })),
      ...(options.maxInflightRequests ? { maxInflightRequests: options.maxInflightRequests } : {}),
    },
    parameters: Object.fromEntries(
      Object.entries(options.parameters ?? {}).map(([key, value]) => [key, { stringValue: value }]),
    ),
    // Filled in once its members are there: an ensemble with a decoupled member is decoupled.
    modelTransactionPolicy: { decoupled: false },
  };
  if (options.responseCache) config.responseCache = { enable: true };
  return withoutDefaultLimit({ ...config, ...source.overrides });
}

/** A limit of 0 is none, and is not shown. */
function withoutDefaultLimit(config: ModelConfig): ModelConfig {
  if (config.ensembleScheduling?.maxInflightRequests !== 0) return config;
  const { maxInflightRequests: _, ...ensembling } = config.ensembleScheduling;
  return { ...config, ensembleScheduling: ensembling };
}
