export type { ArrayOf, BytesArray, InferOptions, RequestSequence, TensorInput } from "@tritonjs/protocol";
export { isTimeout, Tensor, TritonError } from "@tritonjs/protocol";
export { InferResult, type SharedMemoryOutput } from "../infer/infer-result.js";
export type { Compression } from "../options/client-options.js";
export type { InferInput, SharedMemoryInput, SharedMemoryRange } from "../options/infer-options.js";
export type { WaitCallOptions } from "../options/model-options.js";
export type { CudaRegion, SystemRegion } from "../options/shared-memory-regions.js";
export type { LoadModelOptions } from "./calls/repository-calls.js";
export type {
  NewTraceSettings,
  ServerLogSettings,
  ServerTraceSettings,
  TraceCallOptions,
} from "./calls/settings-calls.js";
export type { CudaRegionStatus, SystemRegionStatus } from "./calls/shared-memory-calls.js";
export { codeFromGrpcStatus, GrpcStatusError } from "./carrier/call-error.js";
export type { CallOptions, ClientOptions, ClientTlsOptions, ModelCallOptions } from "./client-options.js";
export { DecoupledModelClient } from "./decoupled-model-client.js";
export type {
  InferCall,
  InferRequestOptions,
  OutputRequest,
  StreamInferRequest,
} from "./infer/infer-options.js";
export type { StreamInferOptions, StreamInferResponse, StreamRequests } from "./infer/stream-infer.js";
export { InferenceServerClient } from "./inference-server-client.js";
export { ModelClient, type ModelClientOptions, type ModelInferOptions } from "./model-client.js";
