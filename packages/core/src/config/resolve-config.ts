import { toConfigDataType } from "../tensor/data-type.js";
import {
  DEFAULT_MAX_BATCH_SIZE,
  defaultDynamicBatching,
  defaultInstanceGroup,
  defaultQueuePolicy,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
} from "./defaults.js";
import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelInstanceGroup,
  ModelQueuePolicy,
  ModelWarmup,
} from "./model-config.js";
import type {
  BatcherOptions,
  InstanceGroupOptions,
  ModelOptions,
  QueuePolicyOptions,
  WarmupOptions,
} from "./model-options.js";
import { normalizeSequenceBatching } from "./sequence-batching.js";
import { sequenceBatching } from "./sequence-options.js";
import type { TensorSpec } from "./tensor-spec.js";

/** What `bind` knows about a model besides its options. */
export interface ResolveInput {
  readonly modelName: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly options: ModelOptions;
  readonly backend: string;
  readonly platform: string;
  /** Whether batching is on when the options do not say. */
  readonly batchingByDefault: boolean;
  readonly decoupledByDefault: boolean;
  /** Instances when the options do not say. */
  readonly defaultInstanceCount: number;
  /** Fields of Triton's message that the options have no word for; they win. */
  readonly overrides?: Partial<ModelConfig>;
}

/** Turns specifications and options into the one form of a configuration. Checks nothing. */
export function resolveConfig(source: ResolveInput): ModelConfig {
  const { modelName, options } = source;
  const batching = options.batching ?? source.batchingByDefault;
  const config: ModelConfig = {
    ...emptyModelConfig(),
    name: modelName,
    backend: source.backend,
    platform: source.platform,
    maxBatchSize: batching ? (options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE) : 0,
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
    instanceGroup: instanceGroups(modelName, options.instanceGroup, source.defaultInstanceCount),
    modelWarmup: (options.modelWarmup ?? []).map(warmup),
    parameters: Object.fromEntries(
      Object.entries(options.parameters ?? {}).map(([key, value]) => [key, { stringValue: value }]),
    ),
  };
  if (options.decoupled ?? source.decoupledByDefault) config.modelTransactionPolicy = { decoupled: true };
  if (options.responseCache) config.responseCache = { enable: true };
  const sequences = options.sequence && sequenceBatching(options.sequence);
  if (sequences !== undefined) config.sequenceBatching = sequences;
  const scheduled = sequences ?? source.overrides?.sequenceBatching;
  if (batching && options.batcher !== false && scheduled === undefined) {
    config.dynamicBatching = dynamicBatching(options.batcher ?? {});
  }
  return normalizeConfig({ ...config, ...source.overrides });
}

function warmup({ name, batchSize = 1, count = 1, inputs }: WarmupOptions): ModelWarmup {
  const entries = Object.entries(inputs).map(([input, { dtype, shape, ...data }]) => {
    const given = data.inputDataFile !== undefined || data.randomData ? data : { zeroData: true };
    return [input, { dataType: toConfigDataType(dtype), dims: [...shape], ...given }] as const;
  });
  return { name, batchSize, count, inputs: Object.fromEntries(entries) };
}

function dynamicBatching(options: BatcherOptions): ModelDynamicBatching {
  const { preferredBatchSize = [], defaultQueuePolicy: shared, priorityQueuePolicy = {}, ...rest } = options;
  const policy = (given: QueuePolicyOptions): ModelQueuePolicy => ({ ...defaultQueuePolicy(), ...given });
  return {
    ...defaultDynamicBatching(),
    ...rest,
    preferredBatchSize: [...preferredBatchSize],
    ...(shared === undefined ? {} : { defaultQueuePolicy: policy(shared) }),
    priorityQueuePolicy: Object.fromEntries(
      Object.entries(priorityQueuePolicy).map(([level, given]) => [level, policy(given)]),
    ),
  };
}

/** Fills what follows from other fields, as Triton does before it shows a configuration. */
export function normalizeConfig(config: ModelConfig): ModelConfig {
  const batching = config.dynamicBatching;
  if (batching !== undefined && batching.preferredBatchSize.length === 0 && config.maxBatchSize > 0) {
    return { ...config, dynamicBatching: { ...batching, preferredBatchSize: [config.maxBatchSize] } };
  }
  const sequences = config.sequenceBatching;
  if (sequences !== undefined) {
    return { ...config, sequenceBatching: normalizeSequenceBatching(sequences, config.maxBatchSize) };
  }
  return config;
}

function instanceGroups(
  modelName: string,
  groups: ModelOptions["instanceGroup"],
  defaultCount: number,
): ModelInstanceGroup[] {
  if (groups === undefined) return [{ ...defaultInstanceGroup(modelName), count: defaultCount }];
  const list = Array.isArray(groups)
    ? (groups as readonly InstanceGroupOptions[])
    : [groups as InstanceGroupOptions];
  return list.map((group, index) => {
    const gpus = [...(group.gpus ?? [])];
    const kind = group.kind ?? "KIND_AUTO";
    return {
      ...defaultInstanceGroup(`${modelName}_${index}`),
      kind: kind === "KIND_AUTO" ? (gpus.length > 0 ? "KIND_GPU" : "KIND_CPU") : kind,
      count: group.count ?? defaultCount,
      gpus,
    };
  });
}
