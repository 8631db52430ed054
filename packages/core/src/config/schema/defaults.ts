import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelInput,
  ModelInstanceGroup,
  ModelOptimizationPolicy,
  ModelOutput,
  ModelQueuePolicy,
} from "@tritonjs/protocol";
import { emptyMessage } from "./field-schema.js";
import { modelConfigSchema } from "./model-config-schema.js";

/*
 * Default values of the configuration message, each as Triton's normalisation leaves it. A function each, so
 * that no two configurations share an object.
 */

/** Most rows in a batch when nobody said: PyTriton's choice. */
export const DEFAULT_MAX_BATCH_SIZE = 4;

/** A configuration in which nothing is written: each field as protobuf leaves it. */
export const emptyConfig = (): ModelConfig => emptyMessage(modelConfigSchema);

/** A configuration with nothing in it but what Triton's normalisation fills in. */
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

/** Pinned memory on, as Triton prints it: it says nothing on a machine without a GPU. */
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

/** Delay 0: batches form while the instances are busy, which gives nearly all the throughput for no latency. */
export const defaultDynamicBatching = (): ModelDynamicBatching => ({
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
});

/** No timeout, no limit. */
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
