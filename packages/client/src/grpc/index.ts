export type { ArrayOf, BytesArray, InferOptions, RequestSequence, TensorInput } from "@tritonjs/protocol";
export { isTimeout, Tensor, TritonError } from "@tritonjs/protocol";
export type { InferInput, SharedMemoryInput, SharedMemoryRange } from "../infer-request.js";
export { InferResult, type SharedMemoryOutput } from "../infer-result.js";
export type { Compression, CudaRegion, SystemRegion, WaitCallOptions } from "../options.js";
export { codeFromGrpcStatus, GrpcStatusError } from "./call-error.js";
export type {
  CallOptions,
  ClientOptions,
  ClientTlsOptions,
  InferCall,
  InferRequestOptions,
  ModelCallOptions,
  OutputRequest,
  StreamInferRequest,
} from "./client-options.js";
export type {
  CudaRegionStatus,
  LoadModelOptions,
  NewTraceSettings,
  ServerLogSettings,
  ServerTraceSettings,
  SystemRegionStatus,
  TraceCallOptions,
} from "./inference-server-client.js";
export {
  DecoupledModelClient,
  InferenceServerClient,
  ModelClient,
  type ModelClientOptions,
  type ModelInferOptions,
} from "./inference-server-client.js";
export type { StreamInferOptions, StreamInferResponse, StreamRequests } from "./stream-infer.js";
