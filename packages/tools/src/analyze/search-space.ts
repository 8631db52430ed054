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
  /** Whether configurations are simulated, so that most of them take no measurement. */
  readonly isSimulated: boolean;
  /** Parameters that the machine cannot vary. */
  readonly fixed?: readonly (keyof VariantParameters)[];
}

/** Smallest preferred sizes that are simulated. Their multiples by powers of two are preferred too. */
const SMALLEST_PREFERRED = [4, 16];

/** Backends whose instances can run in a worker or in a process. */
const ISOLATED_BACKENDS = ["onnxruntime", "javascript", "tensorflow"];

/** Values for the parameters that the user did not give. */
export function defaultSpace(config: ModelConfig, bounds: SpaceBounds): ModelSpace {
  const batches = config.maxBatchSize > 0;
  const isDynamic = batches && config.sequenceBatching === undefined;
  const isOnnx = config.backend === "onnxruntime" || config.platform === "onnxruntime_onnx";
  // A configured isolation may be there for safety, so it stays.
  const hasIsolations =
    (isOnnx || ISOLATED_BACKENDS.includes(config.backend)) && config.parameters.isolation === undefined;
  const space: ModelSpace = {
    instances: Array.from({ length: bounds.maxInstances }, (_, i) => i + 1),
    ...(hasIsolations && bounds.isSimulated && { isolation: ["default", "process"] }),
    ...(batches && { maxBatchSize: powersOfTwo(bounds.maxBatchSize) }),
    ...(isDynamic && { queueDelayMicroseconds: [0, 500, 2000] }),
    ...(isDynamic && bounds.isSimulated && { preferredBatchSizes: preferredSizes(bounds.maxBatchSize) }),
    ...(isDynamic &&
      bounds.latencyBudgetMs !== undefined && { targetLatencyMs: [0, bounds.latencyBudgetMs] }),
    ...(isOnnx && bounds.cores > 1 && { threads: [0, 1] }),
  };
  const { fixed = [] } = bounds;
  return Object.fromEntries(
    Object.entries(space).filter(([name]) => !fixed.includes(name as keyof VariantParameters)),
  );
}

/** No preferred sizes, and lists up to the largest batch: without it, a long queue would run in small batches. */
function preferredSizes(max: number): number[][] {
  return [[], ...SMALLEST_PREFERRED.map((smallest) => powersOfTwo(max, smallest))];
}

function powersOfTwo(max: number, first = 1): number[] {
  const powers: number[] = [];
  for (let value = first; value <= max; value *= 2) powers.push(value);
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
