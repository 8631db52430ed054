import {
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelInput,
  type ModelInstanceGroup,
  type ModelOptimizationPolicy,
  type ModelOutput,
  type ModelQueuePolicy,
  type TensorSpec,
  toConfigDataType,
} from "@tritonjs/protocol";
import { emptyMessage, modelConfigSchema } from "./model-config-schema.js";

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
  name: "",
  platform: "",
  backend: "",
  runtime: "",
  versionPolicy: { latest: { numVersions: 1 } },
  maxBatchSize: 0,
  input: [],
  output: [],
  batchInput: [],
  batchOutput: [],
  optimization: defaultOptimization(),
  instanceGroup: [],
  defaultModelFilename: "",
  ccModelFilenames: {},
  metricTags: {},
  parameters: {},
  modelWarmup: [],
});

/** Pinned memory is on, as Triton prints it. It has no effect on a machine without a GPU. */
export const defaultOptimization = (): ModelOptimizationPolicy => ({
  priority: "PRIORITY_DEFAULT",
  inputPinnedMemory: { enable: true },
  outputPinnedMemory: { enable: true },
  gatherKernelBufferThreshold: 0,
  eagerBatching: false,
});

export const emptyModelInput = (): ModelInput => ({
  name: "",
  dataType: "TYPE_INVALID",
  format: "FORMAT_NONE",
  dims: [],
  isShapeTensor: false,
  allowRaggedBatch: false,
  optional: false,
  isNonLinearFormatIo: false,
});

export const emptyModelOutput = (): ModelOutput => ({
  name: "",
  dataType: "TYPE_INVALID",
  dims: [],
  labelFilename: "",
  isShapeTensor: false,
  isNonLinearFormatIo: false,
});

/** Delay 0: batches form while the instances are busy, which gives nearly all the throughput without added latency. */
export const defaultDynamicBatching = (): ModelDynamicBatching => ({
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
});

export const defaultQueuePolicy = (): ModelQueuePolicy => ({
  timeoutAction: "REJECT",
  defaultTimeoutMicroseconds: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
});

export const defaultInstanceGroup = (name: string): ModelInstanceGroup => ({
  name,
  kind: "KIND_CPU",
  count: 1,
  gpus: [],
  secondaryDevices: [],
  profile: [],
  passive: false,
  hostPolicy: "",
});

export const specFields = ({ name, dtype, shape }: TensorSpec) => ({
  name,
  dataType: toConfigDataType(dtype),
  dims: [...shape],
});

/** Free text of the options, as a configuration has it. */
export const textParameters = (texts: Readonly<Record<string, string>> = {}): ModelConfig["parameters"] =>
  Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, { stringValue: value }]));
