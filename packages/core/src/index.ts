export {
  BFloat16Bits,
  type DataType,
  type ErrorCode,
  type ErrorReason,
  Float16Bits,
  type InferOptions,
  type InputsOf,
  type InputValuesOf,
  type InstanceHosting,
  isTimeout,
  type ModelConfig,
  type ModelMetadata,
  type NdArrayOf,
  type OutputsOf,
  type Parameters,
  Tensor,
  type TensorSpec,
  type TensorValue,
  TritonError,
  type UnnamedTensorSpec,
} from "@tritonjs/protocol";
export type { BindEnsembleOptions, BindOptions } from "./bind/bind-options.js";
export type { ModelHandle } from "./bind/model-handle.js";
export type { CachedOutputs, ResponseCache } from "./cache/response-cache.js";
export {
  batch,
  fillOptionals,
  groupByKeys,
  sample,
  tritonContext,
} from "./callback/batch-decorators.js";
export type {
  DecoratedTensorFunc,
  InferContext,
  InferFunc,
  InferFuncResult,
  InferRequest,
  ResponseSender,
  StyledInferFunc,
  TensorFunc,
} from "./callback/infer-func.js";
export {
  type Done,
  done,
  RESCHEDULE,
  type StepResult,
  type StepwiseModel,
  stepwise,
} from "./callback/infer-func.js";
export {
  constantPadder,
  firstValue,
  groupByValues,
  padBatch,
} from "./callback/row-decorators.js";
// A star export, because module augmentation of the interface works only through one.
export * from "./callback/triton-models.js";
export type { EnsembleStep } from "./config/ensemble.js";
export type {
  BatcherOptions,
  InstanceGroupOptions,
  ModelOptions,
  VariableLengthOptions,
} from "./config/model-options.js";
export type { SequenceOptions } from "./config/sequence-options.js";
export type { Extension } from "./extension/extension.js";
export type { Frontend } from "./frontend/frontend.js";
export type { ServeOptions, ServeResult } from "./frontend/serve-frontends.js";
export type { RequestMemoryOptions, SecurityOptions } from "./frontend/service-options.js";
export type { JsModel, JsModelArgs } from "./instance/js-model.js";
export type { QueueSnapshot } from "./model/version-status.js";
export type { Logger } from "./observe/log.js";
export type { MetricsConfig } from "./observe/metric-families.js";
export type { TraceOptions } from "./observe/trace-settings.js";
export { responseParameters, withParameters } from "./request/inference-response.js";
export type { RequestInfo, SequenceInfo } from "./request-info.js";
export { sequenceState } from "./request-info.js";
export type { HostPolicy } from "./system/host-policy.js";
export { Triton } from "./triton/triton.js";
export type { TritonOptions } from "./triton/triton-options.js";
