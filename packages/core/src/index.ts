export type { BindEnsembleOptions } from "./bind/bind-ensemble-options.js";
export type { BindOptions, InferFuncOption } from "./bind/bind-options.js";
export type { InferOptions } from "./bind/infer-options.js";
export type { InstanceStatus, ModelHandle } from "./bind/model-handle.js";
export type { CachedOutputs, ResponseCache } from "./cache/response-cache.js";
export { batch } from "./callable/batch.js";
export type { InferContext, InstanceDevice, InstanceInfo, RequestInfo } from "./callable/infer-context.js";
export type {
  InferFunc,
  InferRequest,
  InferResult,
  PlainInferFunc,
  ResponseSender,
  StyledInferFunc,
  TensorFunc,
} from "./callable/infer-func.js";
export type { CallInputs, CallOptions, CallOutputs, ModelCaller } from "./callable/model-caller.js";
export { RESCHEDULE } from "./callable/reschedule.js";
export { sample } from "./callable/sample.js";
export { sequenceState } from "./callable/sequence-state.js";
export type { InputsOf, InputValuesOf, NdArrayOf, OutputsOf, ResultOf } from "./callable/tensors-of.js";
export { type Clock, realClock, type Timer } from "./clock/clock.js";
export { VirtualClock } from "./clock/virtual-clock.js";
export type { EnsembleOptions, EnsembleStep } from "./config/ensemble-options.js";
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
export type { TensorSpec } from "./config/tensor-spec.js";
export type { ErrorCode } from "./errors/code.js";
export { TritonError } from "./errors/triton-error.js";
export { lineLogger } from "./observe/log/line-logger.js";
export type { LogFormat, Logger } from "./observe/log/log.js";
export type { Parameters, ParameterValue } from "./request/parameters.js";
export type { EvictionListener, EvictionReason, SequenceInfo } from "./request/sequence-info.js";
export { DATA_TYPES, type DataType, type ElementsOf, isDataType } from "./tensor/data-type.js";
export type { Nested, ScalarOf, TensorValue } from "./tensor/from-value.js";
export {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
} from "./tensor/half-float.js";
export { type ServeResult, Triton } from "./triton.js";
export type { TritonOptions } from "./triton-options.js";
export { VERSION } from "./version.js";

// For frontends -----------------------------------------------------------------------------------------------

export { toConfigJson } from "./config/config-json.js";
export { Log, type LogChanges, type LogSettings } from "./observe/log/log.js";
export { InferenceRequest } from "./request/inference-request.js";
export type { InferenceRequestInit, ResponseHandler } from "./request/inference-request-init.js";
export type { InferenceResponse } from "./request/inference-response.js";
export { NO_PARAMETERS } from "./request/parameters.js";
export { classify } from "./response/classify.js";
export type { DefaultFrontends, Frontend, FrontendAddress, ServeOptions } from "./service/frontend.js";
export type {
  InferenceService,
  ModelIndexEntry,
  ReadyModel,
  ServerMetadata,
} from "./service/inference-service.js";
export type { ModelStatisticsReport } from "./service/statistics-report.js";
export { decodeBytes, encodeBytes } from "./tensor/bytes.js";
export { elementByteSize, fromConfigDataType, toConfigDataType, typedArrayFor } from "./tensor/data-type.js";
export { elementCount, type Shape, shapeToString } from "./tensor/shape.js";
export { Tensor } from "./tensor/tensor.js";
