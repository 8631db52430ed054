import { type ModelConfig, type TensorSpec, toConfigDataType } from "@tritonjs/protocol";
import {
  DEFAULT_MAX_BATCH_SIZE,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
} from "../schema/defaults.js";
import { ENSEMBLE_PLATFORM } from "../validation/validate-ensemble.js";
import type { EnsembleOptions, EnsembleStep } from "./ensemble-options.js";

/** Inputs of `resolveEnsemble`: the options of `bindEnsemble`. */
export interface ResolveEnsembleInput {
  readonly modelName: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly steps: readonly EnsembleStep[];
  readonly options: EnsembleOptions;
  /** Fields of Triton's message. They override the options. */
  readonly overrides?: Partial<ModelConfig>;
}

/** Turns specifications, steps and options into a configuration. Checks nothing. */
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
    // Set once its members are known: an ensemble with a decoupled member is decoupled.
    modelTransactionPolicy: { decoupled: false },
  };
  if (options.responseCache) config.responseCache = { enable: true };
  return withoutDefaultLimit({ ...config, ...source.overrides });
}

/** Removes a limit of 0, which means no limit and is not shown. */
function withoutDefaultLimit(config: ModelConfig): ModelConfig {
  if (config.ensembleScheduling?.maxInflightRequests !== 0) return config;
  const { maxInflightRequests: _, ...ensembling } = config.ensembleScheduling;
  return { ...config, ensembleScheduling: ensembling };
}
