export type { InferOptions, RequestSequence } from "../core.js";
export { isTimeout, Tensor, TritonError } from "../core.js";
export { type ArrayOf, InferResult, type SharedMemoryOutput } from "../infer/infer-result.js";
export type { SharedMemoryInput, SharedMemoryRange } from "../options/infer-options.js";
export type { WaitCallOptions } from "../options/model-options.js";
export type { CudaRegion, SystemRegion } from "../options/shared-memory-regions.js";
export type { LoadModelOptions } from "./calls/repository-calls.js";
export type {
  CudaRegionAnswer,
  ModelConfigAnswer,
  ModelConfigTensor,
  ModelIndexAnswer,
  ModelStatisticsAnswer,
  ServerMetadataAnswer,
  Settings,
  StatisticDuration,
  StatisticsAnswer,
  SystemRegionAnswer,
} from "./calls/server-answers.js";
export type { NewSettings, TraceCallOptions } from "./calls/settings-calls.js";
export { HttpStatusError } from "./carrier/answer-error.js";
export type { Compression } from "./carrier/compression.js";
export type { CallOptions, ClientOptions, Fetch, ModelCallOptions } from "./client-options.js";
export type { GenerateInputs, GenerateResponse } from "./generate/generate.js";
export { decodeInferResponse, type InferResponse } from "./infer/decode-infer-response.js";
export { type EncodedInferRequest, encodeInferRequest } from "./infer/encode-infer-request.js";
export type {
  InferCall,
  InferInput,
  InferRequestOptions,
  OutputRequest,
  TensorInput,
} from "./infer/infer-options.js";
export { InferenceServerClient } from "./inference-server-client.js";
export type { JsonObject, JsonValue } from "./json/parse-json.js";
export type { JsonSource } from "./json/write-json.js";
export { ModelClient, type ModelClientOptions, type ModelInferOptions } from "./model-client.js";
