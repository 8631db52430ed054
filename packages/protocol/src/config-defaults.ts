import { toConfigDataType } from "./data-types.js";
import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelInput,
  ModelInstanceGroup,
  ModelOptimizationPolicy,
  ModelOutput,
  ModelQueuePolicy,
} from "./model-config.js";
import {
  dynamicBatching,
  emptyMessage,
  instanceGroup,
  modelConfigSchema,
  modelInput,
  modelOutput,
  optimization,
} from "./model-config-schema.js";
import type { TensorSpec } from "./tensor-spec.js";

/*
 * Default values of the configuration message, each as Triton's normalisation leaves it. Each default is a function, so
 * that no two configurations share an object.
 */

/** Largest number of rows in a batch by default. It is PyTriton's default. */
export const DEFAULT_MAX_BATCH_SIZE = 4;

/** A configuration in which nothing is written. Each field has protobuf's default. */
export const emptyConfig = (): ModelConfig => emptyMessage(modelConfigSchema);

/** A configuration that has only the fields filled by Triton's normalisation. */
export const emptyModelConfig = (): ModelConfig => ({
  ...emptyConfig(),
  versionPolicy: { latest: { numVersions: 1 } },
  optimization: defaultOptimization(),
});

/** Pinned memory is on, as Triton prints it. It has no effect on a machine without a GPU. */
export const defaultOptimization = (): ModelOptimizationPolicy => ({
  ...emptyMessage(optimization),
  inputPinnedMemory: { enable: true },
  outputPinnedMemory: { enable: true },
});

export const emptyModelInput = (): ModelInput => emptyMessage(modelInput);

export const emptyModelOutput = (): ModelOutput => emptyMessage(modelOutput);

/** Delay 0: batches form while the instances are busy, which gives nearly all the throughput without added latency. */
export const defaultDynamicBatching = (): ModelDynamicBatching => emptyMessage(dynamicBatching);

export const defaultQueuePolicy = (): ModelQueuePolicy => ({
  timeoutAction: "REJECT",
  defaultTimeoutMicroseconds: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
});

export const defaultInstanceGroup = (name: string): ModelInstanceGroup => ({
  ...emptyMessage(instanceGroup),
  name,
  kind: "KIND_CPU",
  count: 1,
});

export const specFields = ({ name, dtype, shape }: TensorSpec) => ({
  name,
  dataType: toConfigDataType(dtype),
  dims: [...shape],
});

/** Free text of the options, as a configuration has it. */
export const textParameters = (texts: Readonly<Record<string, string>> = {}): ModelConfig["parameters"] =>
  Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, { stringValue: value }]));
