import type { ModelConfig } from "@tritonjs/protocol";
import {
  type Candidate,
  canonical,
  PARAMETER_NAMES,
  parametersKey,
  type VariantParameters,
} from "./variant-parameters.js";

/** Values that are tried for each parameter of a model. An absent parameter keeps its configured value. */
export type ModelSpace = {
  readonly [Name in keyof VariantParameters]?: readonly NonNullable<VariantParameters[Name]>[];
};

/** Spaces by model. */
export type SearchSpace = Readonly<Record<string, ModelSpace>>;

/** Bounds of the space that is searched where no values are given. */
export interface SpaceBounds {
  readonly maxInstances: number;
  readonly maxBatchSize: number;
  /** Limit on the p99 latency, which adds adaptive batching to the space. */
  readonly latencyBudgetMs?: number;
  readonly cores: number;
}

/** Values for the parameters that the user did not give. */
export function defaultSpace(config: ModelConfig, bounds: SpaceBounds): ModelSpace {
  const batches = config.maxBatchSize > 0;
  const isDynamic = batches && config.sequenceBatching === undefined;
  const isOnnx = config.backend === "onnxruntime" || config.platform === "onnxruntime_onnx";
  return {
    instances: Array.from({ length: bounds.maxInstances }, (_, i) => i + 1),
    ...(batches && { maxBatchSize: powersOfTwo(bounds.maxBatchSize) }),
    ...(isDynamic && { queueDelayMicroseconds: [0, 500, 2000] }),
    ...(isDynamic &&
      bounds.latencyBudgetMs !== undefined && { targetLatencyMs: [0, bounds.latencyBudgetMs] }),
    ...(isOnnx && bounds.cores > 1 && { threads: [0, 1] }),
  };
}

function powersOfTwo(max: number): number[] {
  const powers: number[] = [];
  for (let value = 1; value <= max; value *= 2) powers.push(value);
  return powers;
}

/** All variants of a model, each once. */
export function variantsOf(space: ModelSpace): VariantParameters[] {
  let all: VariantParameters[] = [{}];
  for (const name of PARAMETER_NAMES) {
    const values = space[name];
    if (values === undefined || values.length === 0) continue;
    all = all.flatMap((variant) => values.map((value) => ({ ...variant, [name]: value })));
  }
  return [...new Map(all.map(canonical).map((variant) => [parametersKey(variant), variant])).values()];
}

/** All combinations of the variants of all models. */
export function candidatesOf(space: SearchSpace): Candidate[] {
  let all: Candidate[] = [{}];
  for (const [model, values] of Object.entries(space)) {
    const variants = variantsOf(values);
    all = all.flatMap((candidate) => variants.map((variant) => ({ ...candidate, [model]: variant })));
  }
  return all;
}

/** Number of combinations, without making them. */
export function candidateCount(space: SearchSpace): number {
  return Object.values(space).reduce((product, values) => product * variantsOf(values).length, 1);
}
