/*
 * Tensors, errors and descriptions of models: the parts that a server of the v2 protocol and its clients share. The
 * package runs in Node.js, in browsers and at the edge. It imports no module of Node.js and uses none of its globals.
 */
export { onAbort } from "./async/abort-listener.js";
export { cancelled, unlessAborted } from "./async/cancelled.js";
export { ConcurrencyGate } from "./async/concurrency-gate.js";
export { LONGEST_TIMEOUT_MS } from "./async/timer-limit.js";
export { closestName } from "./errors/closest-name.js";
export type { ErrorCode } from "./errors/code.js";
export { type ErrorReason, errorReasons, type ReasonOf } from "./errors/error-reasons.js";
export { errorWithoutStack } from "./errors/error-without-stack.js";
export { httpStatusOf } from "./errors/http-status.js";
export { queueFullError } from "./errors/queue-full-error.js";
export { type ReasonStatus, reasonStatus } from "./errors/reason-status.js";
export { statusText } from "./errors/status-text.js";
export { isTimeout, noAnswerError, TIMEOUT_TEXT, timeoutError } from "./errors/timeout-error.js";
export { TritonError, type TritonErrorName, type TritonErrorOptions } from "./errors/triton-error.js";
export type { InferOptions, RequestSequence } from "./model/infer-options.js";
export type { InstanceHosting, Isolation, RecycleOptions } from "./model/instance-hosting.js";
export {
  type InstanceKind,
  isDecoupled,
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelEnsembleStep,
  type ModelEnsembling,
  type ModelInput,
  type ModelInstanceGroup,
  type ModelMetricControl,
  type ModelOptimizationCuda,
  type ModelOptimizationPolicy,
  type ModelOutput,
  type ModelQueuePolicy,
  type ModelVersionPolicy,
  type ModelWarmup,
} from "./model/model-config.js";
export type { ModelIndexEntry } from "./model/model-index-entry.js";
export type { ModelMetadata, TensorMetadata } from "./model/model-metadata.js";
export type {
  ModelSequenceBatching,
  SequenceControl,
  SequenceControlKind,
  SequenceStateTensor,
} from "./model/model-sequence-batching.js";
export type { Duration, ModelStatisticsReport, ResponseStatistics } from "./model/model-statistics.js";
export { NO_PARAMETERS, type Parameters, type ParameterValue } from "./model/parameters.js";
export type { ServerMetadata } from "./model/server-metadata.js";
export {
  BATCH_INPUT_KINDS,
  BATCH_OUTPUT_KINDS,
  type BatchInputSpec,
  type BatchOutputSpec,
  type DescribedTensor,
  type TensorSpec,
} from "./model/tensor-spec.js";
export type {
  ArrayOf,
  InputOf,
  InputsOf,
  InputValuesOf,
  NdArrayOf,
  OutputList,
  OutputsOf,
  ResultOf,
  seenAs,
} from "./model/tensor-types.js";
export { type DefinedMembers, definedMembers } from "./objects/defined-members.js";
export { hasMoreLevels, MOST_LEVELS } from "./objects/levels.js";
export { decodeBytes, encodeBytes, scanBytes } from "./tensor/bytes.js";
export type { BytesArray } from "./tensor/bytes-array.js";
export {
  DATA_TYPES,
  type DataType,
  type Elements,
  type ElementsOf,
  elementByteSize,
  fromConfigDataType,
  isDataType,
  type TypedArray,
  toConfigDataType,
  typedArrayFor,
} from "./tensor/data-type.js";
export { unknownDataTypeText } from "./tensor/data-type-names.js";
export {
  type Nested,
  type PlainObject,
  type ScalarOf,
  type TensorValue,
  tensorFromValue,
  type ValueTarget,
} from "./tensor/from-value.js";
export {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  fromBfloat16,
  fromFloat16,
} from "./tensor/half-float.js";
export { inputNamesFault, inputShapeFault, type NamedInput, type ShapeAxis } from "./tensor/input-faults.js";
export { type BareData, inputTensor, isDescribed, type TensorInput } from "./tensor/input-tensor.js";
export {
  type BatchAxis,
  type ModelSignature,
  modelInputs,
  type SignatureInput,
} from "./tensor/model-inputs.js";
export { contiguousElements, isNdArray, ndArrayLike, ndArrayOf, toNdArray } from "./tensor/nd-array.js";
export { doubleText, numberText } from "./tensor/number-text.js";
export { isReservedParameter } from "./tensor/reserved-parameter.js";
export {
  elementCount,
  matchesShape,
  type Shape,
  sameShape,
  shapeToString,
  wireShape,
  wrappedElementCount,
} from "./tensor/shape.js";
export { Tensor } from "./tensor/tensor.js";
export { activeTraceHeaders, withTraceparent } from "./trace/open-telemetry.js";
