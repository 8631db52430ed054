/*
 * Tensors, errors and descriptions of models: the parts that a server of the v2 protocol and its clients share. The
 * package runs in Node.js, in browsers and at the edge. It imports no module of Node.js and uses none of its globals.
 */
export { cancelled, LONGEST_TIMEOUT_MS, onAbort, unlessAborted } from "./abort.js";
export { closestName } from "./closest-name.js";
export { ConcurrencyGate } from "./concurrency-gate.js";
export {
  bfloat16ToFloat32,
  configDataTypes,
  DATA_TYPES,
  type DataType,
  type Elements,
  type ElementsOf,
  elementByteSize,
  type FixedDataType,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  floatReader,
  floatWriter,
  fromBfloat16,
  fromConfigDataType,
  fromFloat16,
  fromOnnxType,
  isDataType,
  isOnlyBinary,
  type TypedArray,
  toConfigDataType,
  toOnnxType,
  toOrtType,
  typedArrayFor,
  unknownDataTypeText,
} from "./data-types.js";
export type { ErrorCode } from "./error-reasons.js";
export {
  type ErrorReason,
  errorReasons,
  type ReasonOf,
  type ReasonStatus,
  reasonStatus,
} from "./error-reasons.js";
export {
  ANSWER_WORDS,
  type AnswerJson,
  type AnswerJsonObject,
  type DefinedMembers,
  definedMembers,
  doubleText,
  hasMoreLevels,
  isJsonObject,
  type JsonSource,
  MOST_LEVELS,
  numberText,
  parseAnswerJson,
  toJson,
} from "./json.js";
export type {
  Duration,
  InstanceHosting,
  Isolation,
  ModelIndexEntry,
  ModelMetadata,
  ModelSequenceBatching,
  ModelStatisticsReport,
  RecycleOptions,
  ResponseStatistics,
  SequenceControl,
  SequenceControlKind,
  SequenceStateTensor,
  ServerMetadata,
  TensorMetadata,
} from "./model-config.js";
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
} from "./model-config.js";
export {
  type BatchAxis,
  inputNamesFault,
  inputShapeFault,
  type ModelSignature,
  modelInputs,
  type NamedInput,
  type ShapeAxis,
  type SignatureInput,
} from "./model-inputs.js";
export type { BytesArray } from "./nd-array.js";
export { contiguousElements, isNdArray, ndArrayLike, ndArrayOf, toNdArray } from "./nd-array.js";
export {
  decodeBytes,
  elementCount,
  encodeBytes,
  matchesShape,
  type Shape,
  sameShape,
  scanBytes,
  shapeToString,
  Tensor,
  wireShape,
  wrappedElementCount,
} from "./tensor.js";
export {
  type BareData,
  inputTensor,
  isDescribed,
  type Nested,
  type PlainObject,
  type ScalarOf,
  type TensorInput,
  type TensorValue,
  tensorFromValue,
  type ValueTarget,
} from "./tensor-from-value.js";
export type {
  ArrayOf,
  InferOptions,
  InputOf,
  InputsOf,
  InputValuesOf,
  NdArrayOf,
  OutputList,
  OutputsOf,
  RequestSequence,
  ResultOf,
  seenAs,
} from "./tensor-spec.js";
export {
  BATCH_INPUT_KINDS,
  BATCH_OUTPUT_KINDS,
  type BatchInputSpec,
  type BatchOutputSpec,
  type DescribedTensor,
  isReservedParameter,
  NO_PARAMETERS,
  type Parameters,
  type ParameterValue,
  type TensorSpec,
} from "./tensor-spec.js";
export { activeTraceHeaders, withTraceparent } from "./trace-context.js";
export {
  errorWithoutStack,
  httpStatusOf,
  isTimeout,
  noAnswerError,
  queueFullError,
  statusText,
  TIMEOUT_TEXT,
  TritonError,
  type TritonErrorName,
  type TritonErrorOptions,
  timeoutError,
} from "./triton-error.js";
