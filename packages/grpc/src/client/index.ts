export type { LoadModelOptions } from "./calls/repository-calls.js";
export type {
  LogSettings,
  NewTraceSettings,
  TraceCallOptions,
  TraceSettings,
} from "./calls/settings-calls.js";
export type {
  CudaRegion,
  CudaRegionStatus,
  SystemRegion,
  SystemRegionStatus,
} from "./calls/shared-memory-calls.js";
export { codeFromStatus, GrpcStatusError } from "./channel/call-error.js";
export type {
  CallOptions,
  ClientOptions,
  ClientTlsOptions,
  Compression,
  ModelCallOptions,
} from "./client-options.js";
export {
  type ArrayOf,
  type SequenceOptions,
  type SharedMemoryInput,
  type SharedMemoryOutput,
  type SharedMemoryRange,
  TritonError,
  type WaitCallOptions,
} from "./core.js";
export type {
  InferCall,
  InferInput,
  InferRequestOptions,
  OutputRequest,
  StreamInferRequest,
  TensorInput,
} from "./infer/infer-options.js";
export { InferResult, type InferResultInit } from "./infer/infer-result.js";
export { InferenceServerClient } from "./inference-server-client.js";
export { DecoupledModelClient } from "./model/decoupled-model-client.js";
export { ModelClient } from "./model/model-client.js";
export type { ModelClientOptions, ModelInferOptions } from "./model/model-client-options.js";
export type { StreamInferOptions, StreamInferResponse, StreamRequests } from "./stream/stream-infer.js";
