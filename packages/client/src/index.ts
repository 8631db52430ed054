/*
 * What the clients of HTTP and gRPC have in common: types, errors and results. The clients are `@tritonjs/client/http` and
 * `@tritonjs/client/grpc`. Nothing that this leads to imports a module of Node.js or names one of its globals.
 */
export type {
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
export { type ArrayOf, InferResult, type SharedMemoryOutput } from "./infer/infer-result.js";
export type { CommonCallOptions, CommonClientOptions, VersionOption } from "./options/client-options.js";
export type { InferInput, SharedMemoryInput, SharedMemoryRange } from "./options/infer-options.js";
export type { CommonModelOptions, WaitCallOptions } from "./options/model-options.js";
export type { CudaRegion, SystemRegion } from "./options/shared-memory-regions.js";
