/*
 * What the client takes from the core, in one place. At run time it is the part of the core that runs in a browser.
 */
export type {
  InputValuesOf,
  ModelMetadata,
  NdArrayOf,
  Parameters,
  ParameterValue,
  ResultOf,
  TensorSpec,
} from "@tritonjs/core";
export {
  AnsweredTensors,
  type ArrayOf,
  ConcurrencyGate,
  cancelled,
  type Failure,
  onAbort,
  type RetryPolicy,
  retryDelay,
  type SharedMemoryOutput,
  unlessAborted,
} from "@tritonjs/core/client";
export {
  type BatchAxis,
  type DataType,
  type ElementsOf,
  elementCount,
  fromConfigDataType,
  inputTensor,
  isDataType,
  isDescribed,
  type ModelSignature,
  modelInputs,
  type Shape,
  type SignatureInput,
  shapeToString,
  Tensor,
  type TensorInput,
  type TensorValue,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/core/tensor";
