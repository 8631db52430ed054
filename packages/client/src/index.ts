/*
 * Types, errors and results of both clients. The clients are `@tritonjs/client/http` and `@tritonjs/client/grpc`. This
 * module and its imports use no module and no global of Node.js.
 */
export type {
  ArrayOf,
  BytesArray,
  DataType,
  ElementsOf,
  InferOptions,
  InputValuesOf,
  Parameters,
  ParameterValue,
  RequestSequence,
  ResultOf,
  Shape,
  TensorInput,
  TensorSpec,
} from "@tritonjs/protocol";
export { isTimeout, Tensor, TritonError } from "@tritonjs/protocol";
export { InferResult, type SharedMemoryOutput } from "./infer/infer-result.js";
export type { CommonCallOptions, CommonClientOptions, VersionOption } from "./options/client-options.js";
export type { InferInput, SharedMemoryInput, SharedMemoryRange } from "./options/infer-options.js";
export type { CommonModelOptions, WaitCallOptions } from "./options/model-options.js";
export type { CudaRegion, SystemRegion } from "./options/shared-memory-regions.js";
