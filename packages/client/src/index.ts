/*
 * Types, errors and results of both clients. The clients are `@tritonjs/client/http` and `@tritonjs/client/grpc`. This
 * module and its imports use no module and no global of Node.js.
 */
export type {
  ArrayOf,
  BytesArray,
  DataType,
  InferOptions,
  Parameters,
  ParameterValue,
  RequestSequence,
  ResultOf,
  Shape,
  TensorInput,
  TensorSpec,
  ValuesArray,
} from "@tritonjs/protocol";
export { BFloat16Bits, Float16Bits, isTimeout, Tensor, TritonError } from "@tritonjs/protocol";
export type { InferInput, SharedMemoryInput } from "./infer-request.js";
export { InferResult, type SharedMemoryOutput } from "./infer-result.js";
export type { CudaRegion, SystemRegion } from "./options.js";
export type {
  AnsweringCalls,
  BatchOutputs,
  ClassifyOptions,
  ClassScore,
  LabelOf,
  ModelNamed,
  ModelsClient,
  SampleOutputs,
  ServedModelTypes,
  ShapedArray,
  StreamingCalls,
} from "./served-models.js";
