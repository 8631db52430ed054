/*
 * Triton's `ModelConfig` message (model_config.proto) as TypeScript: field names in camelCase, enums by name, 64-bit
 * integers as numbers. This is the only form of a configuration inside the library. `bind` makes it from its options. A
 * model repository reads it from config.pbtxt. HTTP prints it as JSON, and gRPC as protobuf.
 * schema/model-config-schema.ts has the same message as a table.
 */

/** One input of a model. `dims` are without the batch axis if `maxBatchSize` > 0. */
export interface ModelInput {
  name: string;
  dataType: string;
  format: string;
  dims: number[];
  reshape?: { shape: number[] };
  isShapeTensor: boolean;
  allowRaggedBatch: boolean;
  optional: boolean;
  isNonLinearFormatIo: boolean;
}

/** One output of a model. `dims` are without the batch axis if `maxBatchSize` > 0. */
export interface ModelOutput {
  name: string;
  dataType: string;
  dims: number[];
  reshape?: { shape: number[] };
  labelFilename: string;
  isShapeTensor: boolean;
  isNonLinearFormatIo: boolean;
}

/** Limits of requests that wait in a queue. Timeouts are in microseconds, 0 for none. */
export interface ModelQueuePolicy {
  timeoutAction: "REJECT" | "DELAY";
  defaultTimeoutMicroseconds: number;
  allowTimeoutOverride: boolean;
  /** Largest number of requests in the queue; 0 for no limit. */
  maxQueueSize: number;
}

/** How the dynamic batcher forms batches. */
export interface ModelDynamicBatching {
  preferredBatchSize: number[];
  maxQueueDelayMicroseconds: number;
  preserveOrdering: boolean;
  priorityLevels: number;
  defaultPriorityLevel: number;
  defaultQueuePolicy?: ModelQueuePolicy;
  priorityQueuePolicy: Record<string, ModelQueuePolicy>;
}

/** One step of an ensemble: a model, and the ensemble's tensors for its own. */
export interface ModelEnsembleStep {
  modelName: string;
  /** Version of the model; -1 for the highest one that is ready. */
  modelVersion: number;
  /** Ensemble tensors by the names of the model's inputs. */
  inputMap: Record<string, string>;
  /** Ensemble tensors by the names of the model's outputs. */
  outputMap: Record<string, string>;
  modelNamespace: string;
}

/** The steps of an ensemble, and how tensors pass between them. */
export interface ModelEnsembling {
  step: ModelEnsembleStep[];
  /** Largest number of requests in flight in one step, over all requests of the ensemble. Absent for no limit. */
  maxInflightRequests?: number;
}

/** Kind of device on which the instances of a model run. */
export type InstanceKind = "KIND_AUTO" | "KIND_GPU" | "KIND_CPU" | "KIND_MODEL";

/** A group of equal instances. With `KIND_GPU` there are `count` of them for each of `gpus`. */
export interface ModelInstanceGroup {
  name: string;
  kind: InstanceKind;
  count: number;
  rateLimiter?: { resources: { name: string; global: boolean; count: number }[]; priority: number };
  gpus: number[];
  secondaryDevices: { kind: string; deviceId: number }[];
  profile: string[];
  passive: boolean;
  hostPolicy: string;
  /** Settings of this library beyond Triton. They are not part of the message. */
  hosting?: InstanceHosting;
}

/** Selects the versions that are served. */
export interface ModelVersionPolicy {
  latest?: { numVersions: number };
  all?: Record<string, never>;
  specific?: { versions: number[] };
}

/** Triton's model configuration. */
export interface ModelConfig {
  name: string;
  platform: string;
  backend: string;
  runtime: string;
  /** Absent until a written configuration has been completed. Then it defaults to the latest version. */
  versionPolicy?: ModelVersionPolicy;
  /** Largest number of rows in a batch. 0 means no batching: dims are whole shapes. */
  maxBatchSize: number;
  input: ModelInput[];
  output: ModelOutput[];
  batchInput: { kind: string; targetName: string[]; dataType: string; sourceInput: string[] }[];
  batchOutput: { targetName: string[]; kind: string; sourceInput: string[] }[];
  optimization?: ModelOptimizationPolicy;
  dynamicBatching?: ModelDynamicBatching;
  sequenceBatching?: ModelSequenceBatching;
  ensembleScheduling?: ModelEnsembling;
  instanceGroup: ModelInstanceGroup[];
  defaultModelFilename: string;
  ccModelFilenames: Record<string, string>;
  metricTags: Record<string, string>;
  parameters: Record<string, { stringValue: string }>;
  modelWarmup: ModelWarmup[];
  modelOperations?: { opLibraryFilename: string[] };
  modelTransactionPolicy?: { decoupled: boolean };
  modelRepositoryAgents?: { agents: { name: string; parameters: Record<string, string> }[] };
  responseCache?: { enable: boolean };
  modelMetrics?: { metricControl: ModelMetricControl[] };
}

/** How one family of metrics is collected for a model. */
export interface ModelMetricControl {
  metricIdentifier?: { family: string };
  histogramOptions?: { buckets: number[] };
}

/** How CUDA is used. */
export interface ModelOptimizationCuda {
  graphs: boolean;
  busyWaitEvents: boolean;
  graphSpec: {
    batchSize: number;
    input: Record<string, { dim: number[] }>;
    graphLowerBound?: { batchSize: number; input: Record<string, { dim: number[] }> };
  }[];
  outputCopyStream: boolean;
}

/** Hints to backends. */
export interface ModelOptimizationPolicy {
  priority: "PRIORITY_DEFAULT" | "PRIORITY_MAX" | "PRIORITY_MIN";
  graph?: { level: number };
  cuda?: ModelOptimizationCuda;
  executionAccelerators?: {
    gpuExecutionAccelerator: { name: string; parameters: Record<string, string> }[];
    cpuExecutionAccelerator: { name: string; parameters: Record<string, string> }[];
  };
  inputPinnedMemory?: { enable: boolean };
  outputPinnedMemory?: { enable: boolean };
  gatherKernelBufferThreshold: number;
  eagerBatching: boolean;
}

/** Requests that run through each new instance before it serves. */
export interface ModelWarmup {
  name: string;
  batchSize: number;
  inputs: Record<
    string,
    {
      dataType: string;
      dims: readonly number[];
      zeroData?: boolean;
      randomData?: boolean;
      inputDataFile?: string;
      /** The tensor in its wire form, as given to `bind`. It is not part of Triton's message. */
      inputData?: Uint8Array;
    }
  >;
  count: number;
}

/** True if the model answers each request with any number of responses. */
export function isDecoupled(config: ModelConfig): boolean {
  return config.modelTransactionPolicy?.decoupled === true;
}

/** Information that a control tensor gives the model. */
export type SequenceControlKind =
  | "CONTROL_SEQUENCE_START"
  | "CONTROL_SEQUENCE_READY"
  | "CONTROL_SEQUENCE_END"
  | "CONTROL_SEQUENCE_CORRID";

/** A control and its values for false and true. The correlation id has a data type instead. */
export interface SequenceControl {
  kind: SequenceControlKind;
  int32FalseTrue: number[];
  fp32FalseTrue: number[];
  boolFalseTrue: boolean[];
  dataType: string;
}

/** A tensor that Triton keeps between the requests of a sequence. */
export interface SequenceStateTensor {
  inputName: string;
  outputName: string;
  dataType: string;
  dims: number[];
  initialState: { dataType: string; dims: number[]; zeroData?: boolean; dataFile?: string; name: string }[];
  useSameBufferForInputOutput: boolean;
  useGrowableMemory: boolean;
}

/** How sequences are scheduled: requests with one correlation id go to one instance, one after the other. */
export interface ModelSequenceBatching {
  /** Every sequence has its own slot of the batch. This is the default strategy. */
  direct?: { maxQueueDelayMicroseconds: number; minimumSlotUtilization: number };
  /** The next requests of all sequences join in order of arrival. */
  oldest?: {
    maxCandidateSequences: number;
    preferredBatchSize: number[];
    maxQueueDelayMicroseconds: number;
    preserveOrdering: boolean;
  };
  maxSequenceIdleMicroseconds: number;
  controlInput: { name: string; control: SequenceControl[] }[];
  state: SequenceStateTensor[];
  iterativeSequence: boolean;
}

/**
 * Where an instance runs: on the thread that bound the model, in a worker thread, or in a child process.
 *
 * | | a closure | a module | a model file |
 * |---|---|---|---|
 * | `inline` | always | optional | never |
 * | `worker` | | by default | by default |
 * | `process` | | optional | optional |
 */
export type Isolation = "inline" | "worker" | "process";

/** When an instance is replaced by a new one. The new one starts first. */
export interface RecycleOptions {
  /** Number of requests after which the instance is replaced. */
  readonly afterRequests?: number;
  /**
   * Memory after a batch above which the instance is replaced, in megabytes. For a process it is all memory. For a
   * worker thread it is the heap, including garbage that has not been collected.
   */
  readonly aboveMemoryMb?: number;
}

/** Where an instance runs and its limits, beyond Triton's instance group. */
export interface InstanceHosting {
  /** Where the instance runs. @default "inline" for functions, "worker" for modules and model files */
  readonly isolation?: Isolation;
  /**
   * Limit of the JavaScript heap in megabytes. The instance is ended when it exceeds the limit. Not for `inline`.
   * @default Node's own limit
   */
  readonly heapLimitMb?: number;
  /**
   * Time limit of a batch, in milliseconds. When a batch exceeds it, the instance is ended and restarted, and the batch
   * fails with UNAVAILABLE. Not for `inline`, and for model files only with `process` or the ONNX engine `native`,
   * which ends only the batch. @default no limit
   */
  readonly executionTimeoutMs?: number;
  /**
   * Time limit of a batch after all of its requests have been cancelled, in milliseconds. Otherwise like
   * `executionTimeoutMs`. @default no limit
   */
  readonly abandonedTimeoutMs?: number;
  readonly recycle?: RecycleOptions;
}

/** A tensor in the v2 metadata. If the model has a batch axis, the shape begins with it as -1. */
export interface TensorMetadata {
  readonly name: string;
  readonly datatype: string;
  readonly shape: number[];
}

/** The answer of `GET v2/models/M`. */
export interface ModelMetadata {
  readonly name: string;
  readonly versions: string[];
  readonly platform: string;
  readonly inputs: TensorMetadata[];
  readonly outputs: TensorMetadata[];
}

/** The answer of `GET v2`. */
export interface ServerMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

/** One row of the repository index. */
export interface ModelIndexEntry {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

/** A number of events and their total time in nanoseconds. */
export interface Duration {
  count: number;
  ns: number;
}

/** Outcomes and times of all responses with the same index within their request. */
export interface ResponseStatistics {
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
  readonly success: Duration;
  readonly fail: Duration;
  /** Requests that ended without a response. */
  readonly emptyResponse: Duration;
  /** Requests that were cancelled before this response. */
  readonly cancel: Duration;
}

/** Statistics of one model version: the protocol's `ModelStatistics` message. */
export interface ModelStatisticsReport {
  readonly name: string;
  readonly version: string;
  /** Wall time of the last inference, in milliseconds since 1970. */
  readonly lastInference: number;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly inferenceStats: {
    readonly success: Duration;
    readonly fail: Duration;
    readonly queue: Duration;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
    readonly cacheHit: Duration;
    readonly cacheMiss: Duration;
  };
  /** Statistics of the first 1024 responses of decoupled models, by their index within the request. */
  readonly responseStats: Readonly<Record<string, Readonly<ResponseStatistics>>>;
  readonly batchStats: readonly {
    readonly batchSize: number;
    readonly computeInput: Duration;
    readonly computeInfer: Duration;
    readonly computeOutput: Duration;
  }[];
  readonly memoryUsage: readonly { readonly type: string; readonly id: number; readonly byteSize: number }[];
}
