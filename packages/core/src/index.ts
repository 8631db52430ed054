export type { BindEnsembleOptions } from "./bind/bind-ensemble-options.js";
export type { BindOptions, InferFuncOption } from "./bind/bind-options.js";
export type { InstanceChange } from "./bind/instance-changes.js";
export type { InstanceStatus, ModelHandle } from "./bind/model-handle.js";
export type { CachedOutputs, ResponseCache } from "./cache/response-cache.js";
export { batch } from "./callable/batch.js";
export { constantPadder } from "./callable/constant-padder.js";
export type { MethodDecoratorContext } from "./callable/decorate.js";
export { type FillOptionals, fillOptionals } from "./callable/fill-optionals.js";
export { type FirstValue, type FirstValueOptions, firstValue } from "./callable/first-value.js";
export { groupByKeys } from "./callable/group-by-keys.js";
export {
  type GroupByValues,
  type GroupByValuesOptions,
  type GroupOutputs,
  type GroupPadFunction,
  groupByValues,
} from "./callable/group-by-values.js";
export type {
  InferContext,
  InstanceDevice,
  InstanceInfo,
  RequestScope,
} from "./callable/infer-context.js";
export type {
  AnyTensorFunc,
  DecoratedTensorFunc,
  InferFunc,
  InferRequest,
  InferResult,
  PlainInferFunc,
  ResponseSender,
  StyledInferFunc,
  TensorFunc,
} from "./callable/infer-func.js";
export type { CallInputs, CallOptions, CallOutputs, ModelCaller } from "./callable/model-caller.js";
export { padBatch } from "./callable/pad-batch.js";
export { RESCHEDULE } from "./callable/reschedule.js";
export { sample } from "./callable/sample.js";
export { sequenceState } from "./callable/sequence-state.js";
export { type Done, done, type StepResult, type StepwiseModel, stepwise } from "./callable/stepwise.js";
export type { InputsOf, InputValuesOf, NdArrayOf, OutputsOf, ResultOf } from "./callable/tensor-types.js";
export { tritonContext } from "./callable/triton-context.js";
// Re-exported as a whole: only so can others add to the interface in it.
export * from "./callable/triton-models.js";
export { type Clock, realClock, type Timer } from "./clock/clock.js";
export { VirtualClock } from "./clock/virtual-clock.js";
export type { EnsembleOptions, EnsembleStep } from "./config/ensemble-options.js";
export type { HostPolicies, HostPolicy } from "./config/host-policy.js";
export type { InstanceHosting, Isolation, RecycleOptions } from "./config/instance-hosting.js";
export type { InstancePlacement } from "./config/instances.js";
export type {
  InstanceKind,
  ModelConfig,
  ModelDynamicBatching,
  ModelEnsembleStep,
  ModelEnsembling,
  ModelInput,
  ModelInstanceGroup,
  ModelOutput,
  ModelQueuePolicy,
} from "./config/model-config.js";
export { isDecoupled } from "./config/model-config.js";
export type { ModelMetadata, TensorMetadata } from "./config/model-metadata.js";
export type { BatcherOptions, InstanceGroupOptions, ModelOptions } from "./config/model-options.js";
export type { ModelSequenceBatching } from "./config/sequence-batching.js";
export type { SequenceOptions } from "./config/sequence-options.js";
export type { SequenceStateOption } from "./config/sequence-state-options.js";
export type { BatchInputSpec, BatchOutputSpec, TensorSpec } from "./config/tensor-spec.js";
export type {
  BatchingRequest,
  BatchKey,
  BatchPadFunction,
  PadValue,
  VariableLengthOptions,
} from "./config/variable-length-options.js";
export type { ErrorCode } from "./errors/code.js";
export { type ErrorReason, errorReasons, type ReasonEntry, type ReasonOf } from "./errors/error-reasons.js";
export { statusText } from "./errors/status-text.js";
export { isTimeout } from "./errors/timeout-error.js";
export { TritonError, type TritonErrorOptions } from "./errors/triton-error.js";
export type { SecurityOptions } from "./frontend/security.js";
export type {
  JsModel,
  JsModelArgs,
  JsModelClass,
  JsModelControl,
  JsModelLogger,
} from "./instance/module/js-model.js";
export type { JsMetricLabels, JsMetricOptions, JsModelMetrics } from "./instance/module/model-metrics.js";
export type { RateLimitResource } from "./instance/rate-limiter/resource-pools.js";
export type {
  InstanceQueueSnapshot,
  PayloadSnapshot,
  QueueLevelSnapshot,
  QueueSnapshot,
} from "./model/queue-snapshot.js";
export type { CacheUsage } from "./observe/cache-metrics.js";
export type { Cut, CutReason } from "./observe/cut-log.js";
export type { MetricsConfig } from "./observe/latency/metrics-config.js";
export { lineLogger } from "./observe/log/line-logger.js";
export type { LogFormat, Logger } from "./observe/log/log.js";
export type { OpenTelemetryOptions } from "./observe/trace/span-exporter.js";
export type { TraceLevelOption, TraceOptions } from "./observe/trace/trace-options.js";
export type {
  RepositoryAgent,
  RepositoryAgentAction,
  RepositoryAgentModel,
} from "./repository/agents/repository-agent.js";
export { isCloudPath } from "./repository/cloud/cloud-path.js";
export type { LoadParameters, UnloadParameters } from "./repository/load-parameters.js";
export type { BackendConfig, ModelControlMode, RepositoryOptions } from "./repository/repository-options.js";
export type { InferOptions, RequestSequence } from "./request/infer-options.js";
export type { Parameters, ParameterValue } from "./request/parameters.js";
export type { RequestInfo } from "./request/request-info.js";
export type { EvictionListener, EvictionReason, SequenceInfo } from "./request/sequence-info.js";
export type { RequestMemoryOptions } from "./request-memory/request-memory-options.js";
export {
  type ResponseParameters,
  responseParameters,
  withParameters,
} from "./response/response-parameters.js";
export type { ServeResult } from "./serve/open-frontends.js";
export type { EndpointGroup } from "./service/restrictions.js";
export { DATA_TYPES, type DataType, type ElementsOf, isDataType } from "./tensor/data-type.js";
export type { Nested, ScalarOf, TensorValue } from "./tensor/from-value.js";
export {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
} from "./tensor/half-float.js";
export { Triton } from "./triton.js";
export type { TritonOptions } from "./triton-options.js";
export { VERSION } from "./version.js";

// For tools that work on configurations ------------------------------------------------------------------------

export { AutoCompleteConfig, type AutoCompleteTensor } from "./config/complete/auto-complete-config.js";
export { type CompleteOptions, completeConfig } from "./config/complete/complete-config.js";
export type { FileDescription } from "./config/complete/onnx.js";
export { type ConfigSource, prepareConfig } from "./config/complete/prepare-config.js";
export { configFromJson } from "./config/config-from-json.js";
export { fieldNotes, fieldProblems } from "./config/field-support.js";
export { modelTypes } from "./config/model-types.js";
export { readPrototxt } from "./config/prototxt/read-prototxt.js";
export { writePrototxt } from "./config/prototxt/write-prototxt.js";
export {
  type Finding,
  type InspectOptions,
  inspectRepository,
  type ModelInspection,
} from "./repository/inspect/inspect-repository.js";

// For frontends -----------------------------------------------------------------------------------------------

export { LONGEST_TIMEOUT_MS } from "./clock/clock.js";
export { toConfigJson } from "./config/config-json.js";
export { type InitialStates, initialStates } from "./config/initial-states.js";
export { AccessGate } from "./frontend/access-gate.js";
export type { DefaultFrontends, Frontend, FrontendAddress, ServeOptions } from "./frontend/frontend.js";
export { headerPattern } from "./frontend/header-pattern/header-pattern.js";
export { type ListenAt, type Listening, type ListeningServer, listenOnAll } from "./frontend/listen.js";
export { type ResolvedTlsOptions, resolveTls, type TlsOptions } from "./frontend/tls-options.js";
export type {
  Backend,
  BackendFactory,
  ExecutorContext,
  ModelDescription,
  ModelSource,
} from "./instance/backend.js";
export { callbackExecutor } from "./instance/callback-executor.js";
export type {
  ExecutableRequest,
  Execution,
  ExecutionResult,
  ExecutionWatcher,
  Executor,
} from "./instance/executor.js";
export { acceptFaults } from "./observe/log/accept-faults.js";
export { Log, type LogChanges, type LogSettings } from "./observe/log/log.js";
export {
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  traceSettingTexts,
} from "./observe/trace/read-trace-setting.js";
export type { RequestTrace } from "./observe/trace/request-trace.js";
export type { TraceChanges, TraceLevel, TraceMode, TraceSettings } from "./observe/trace/trace-settings.js";
export { Tracing } from "./observe/trace/tracing.js";
export type { ModelIndexEntry } from "./repository/index-rows.js";
export type { InferenceRequestInit, InferInit, ResponseHandler } from "./request/inference-request-init.js";
export type { InferenceResponse } from "./request/inference-response.js";
export { NO_PARAMETERS } from "./request/parameters.js";
// For fake services in tests.
export { PendingRequest as InferenceRequest } from "./request/pending-request.js";
export type { RequestHandle } from "./request/request-handle.js";
export { UnpackFault, type UnpackFaultKind } from "./request-memory/inflate.js";
export { type MemoryRefusals, RequestMemory } from "./request-memory/request-memory.js";
export type { RequestShare } from "./request-memory/request-share.js";
export { classify } from "./response/classify.js";
export type {
  InferenceService,
  MountedFrontend,
  PinnedModel,
  ReadyModel,
  ServerMetadata,
} from "./service/inference-service.js";
export { ENDPOINT_GROUPS, type Restriction, type Restrictions } from "./service/restrictions.js";
export type { ModelStatisticsReport } from "./service/statistics-report.js";
export type { RequestedRange, SystemRegionStatus } from "./shared-memory/registered-region.js";
export { type RegionRange, RequestRegions } from "./shared-memory/request-regions.js";
export {
  type CudaRegionStatus,
  SharedMemory,
  type SystemRegionRequest,
} from "./shared-memory/shared-memory.js";
export { decodeBytes, encodeBytes } from "./tensor/bytes.js";
export { elementByteSize, fromConfigDataType, toConfigDataType, typedArrayFor } from "./tensor/data-type.js";
export { isReservedParameter } from "./tensor/reserved-parameter.js";
export { elementCount, type Shape, shapeToString, wireShape } from "./tensor/shape.js";
export { Tensor } from "./tensor/tensor.js";
