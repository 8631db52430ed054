import {
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelQueuePolicy,
  type ModelWarmup,
  type TensorSpec,
  toConfigDataType,
} from "@tritonjs/protocol";
import { type Gpus, MachineGpus } from "../placement/gpus.js";
import { instanceGroups, normalizeInstanceGroups } from "../placement/instance-groups.js";
import {
  DEFAULT_MAX_BATCH_SIZE,
  defaultDynamicBatching,
  defaultQueuePolicy,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
} from "../schema/defaults.js";
import { normalizeSequenceBatching } from "../schema/sequence-batching.js";
import { batchTensorsOf } from "./batch-tensors.js";
import type { BatcherOptions, ModelOptions, QueuePolicyOptions, WarmupOptions } from "./model-options.js";
import { sequenceBatching } from "./sequence-options.js";
import { withTargetLatency } from "./target-latency.js";

import { warmupData } from "./warmup-data.js";

/** Inputs of `resolveConfig`: the options of `bind`, and what it knows about the model besides them. */
export interface ResolveInput {
  readonly modelName: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly options: ModelOptions;
  readonly backend: string;
  readonly platform: string;
  /** Whether batching is on by default. */
  readonly batchingByDefault: boolean;
  readonly decoupledByDefault: boolean;
  /** Default number of instances. */
  readonly defaultInstanceCount: number;
  /** GPUs that instance groups may name. @default the GPUs of the machine */
  readonly gpus?: Gpus;
  /** Fields of Triton's message that the options do not cover. They override the options. */
  readonly overrides?: Partial<ModelConfig>;
}

/** Turns specifications and options into a configuration. Checks nothing. */
export function resolveConfig(source: ResolveInput): ModelConfig {
  const { modelName, options } = source;
  const batching = options.batching ?? source.batchingByDefault;
  const config: ModelConfig = {
    ...emptyModelConfig(),
    name: modelName,
    backend: source.backend,
    platform: source.platform,
    maxBatchSize: batching ? (options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE) : 0,
    input: source.inputs
      .filter((spec) => spec.batchInput === undefined)
      .map((spec) => ({
        ...emptyModelInput(),
        name: spec.name,
        dataType: toConfigDataType(spec.dtype),
        dims: [...spec.shape],
        optional: spec.optional ?? false,
        allowRaggedBatch: spec.allowRaggedBatch ?? false,
        isShapeTensor: spec.isShapeTensor ?? false,
      })),
    output: source.outputs.map((spec) => ({
      ...emptyModelOutput(),
      name: spec.name,
      dataType: toConfigDataType(spec.dtype),
      dims: [...spec.shape],
      isShapeTensor: spec.isShapeTensor ?? false,
    })),
    ...batchTensorsOf(source.inputs, source.outputs),
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
  // Requests of a decoupled model without a batch axis can have priorities and limits of their queue, too.
  const queues =
    batching || (options.batcher !== undefined && config.modelTransactionPolicy?.decoupled === true);
  if (queues && options.batcher !== false && scheduled === undefined) {
    config.dynamicBatching = dynamicBatching(options.batcher ?? {});
  }
  const target = options.batcher === false ? undefined : options.batcher?.targetLatencyMs;
  const merged = withTargetLatency(normalizeConfig({ ...config, ...source.overrides }), target);
  const gpus = source.gpus ?? new MachineGpus();
  const groups = merged.instanceGroup.length > 0 ? merged.instanceGroup : config.instanceGroup;
  return {
    ...merged,
    instanceGroup: normalizeInstanceGroups({ name: merged.name, instanceGroup: groups }, gpus),
  };
}

function warmup({ name, batchSize = 1, count = 1, inputs }: WarmupOptions): ModelWarmup {
  const entries = Object.entries(inputs).map(([input, options]) => {
    const { dtype, shape, data: _data, ...data } = options;
    const inputData = warmupData(name, input, options);
    const given =
      typeof inputData === "object"
        ? { inputData }
        : data.inputDataFile !== undefined || data.randomData
          ? data
          : { zeroData: true };
    return [input, { dataType: toConfigDataType(dtype), dims: [...shape], ...given }] as const;
  });
  return { name, batchSize, count, inputs: Object.fromEntries(entries) };
}

function dynamicBatching(options: BatcherOptions): ModelDynamicBatching {
  const { preferredBatchSize = [], defaultQueuePolicy: shared, priorityQueuePolicy = {}, ...given } = options;
  // Functions are not part of a configuration: they stay with the batcher.
  const { batchBy: _batchBy, cost: _cost, maxBatchCost: _maxBatchCost, pad: _pad, ...triton } = given;
  const { targetLatencyMs: _targetLatencyMs, ...rest } = triton;
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

/** Fills fields that follow from others, as Triton does before it shows a configuration. */
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
