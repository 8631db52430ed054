export {
  type DataType,
  type ErrorCode,
  type ErrorReason,
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
} from "@tritonjs/protocol";
export type { BindEnsembleOptions } from "./binding/bind-ensemble-options.js";
export type { BindOptions } from "./binding/bind-options.js";
export type { ModelHandle } from "./binding/model-handle.js";
export type { CachedOutputs, ResponseCache } from "./cache/response-cache.js";
export { batch } from "./callable/batch.js";
export { constantPadder } from "./callable/constant-padder.js";
export { type FillOptionals, fillOptionals } from "./callable/fill-optionals.js";
export { type FirstValue, firstValue } from "./callable/first-value.js";
export { groupByKeys } from "./callable/group-by-keys.js";
export { type GroupByValues, groupByValues } from "./callable/group-by-values.js";
export type { InferContext } from "./callable/infer-context.js";
export type {
  DecoratedTensorFunc,
  InferFunc,
  InferFuncResult,
  InferRequest,
  ResponseSender,
  StyledInferFunc,
  TensorFunc,
} from "./callable/infer-func.js";
export { padBatch } from "./callable/pad-batch.js";
export { RESCHEDULE } from "./callable/reschedule.js";
export { sample } from "./callable/sample.js";
export { sequenceState } from "./callable/sequence-state.js";
export { type Done, done, type StepResult, type StepwiseModel, stepwise } from "./callable/stepwise.js";
export { tritonContext } from "./callable/triton-context.js";
// A star export, because module augmentation of the interface works only through one.
export * from "./callable/triton-models.js";
export type { EnsembleStep } from "./config/options/ensemble-options.js";
export type { BatcherOptions, InstanceGroupOptions, ModelOptions } from "./config/options/model-options.js";
export type { SequenceOptions } from "./config/options/sequence-options.js";
export type { VariableLengthOptions } from "./config/options/variable-length-options.js";
export type { HostPolicy } from "./config/placement/host-policy.js";
export type { Frontend, ServeOptions } from "./frontend/frontend.js";
export type { SecurityOptions } from "./frontend/security.js";
export type { JsModel, JsModelArgs } from "./instance/module/js-model.js";
export type { QueueSnapshot } from "./model/queue-snapshot.js";
export type { MetricsConfig } from "./observe/latency/metrics-config.js";
export type { Logger } from "./observe/log/logger.js";
export type { TraceOptions } from "./observe/trace/trace-options.js";
export type {
  RepositoryAgent,
  RepositoryAgentAction,
  RepositoryAgentModel,
} from "./repository/agents/repository-agent.js";
export type { RepositoryOptions } from "./repository/repository-options.js";
export type { RequestInfo } from "./request/request-info.js";
export type { SequenceInfo } from "./request/sequence-info.js";
export type { RequestMemoryOptions } from "./request-memory/request-memory-options.js";
export { responseParameters, withParameters } from "./response/response-parameters.js";
export type { ServeResult } from "./server/open-frontends.js";
export type { TritonOptions } from "./server/triton-options.js";
export { Triton } from "./triton.js";
