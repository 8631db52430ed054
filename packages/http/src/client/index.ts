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
export type { CudaRegion, SystemRegion } from "./calls/shared-memory-calls.js";
export type { CallOptions, ClientOptions, Fetch, ModelCallOptions } from "./client-options.js";
export type {
  ArrayOf,
  SequenceOptions,
  SharedMemoryInput,
  SharedMemoryOutput,
  SharedMemoryRange,
  WaitCallOptions,
} from "./core.js";
export { TritonError } from "./core.js";
export type { GenerateInputs, GenerateResponse } from "./generate/generate.js";
export { decodeInferResponse } from "./infer/decode-infer-response.js";
export { type EncodedInferRequest, encodeInferRequest } from "./infer/encode-infer-request.js";
export type {
  InferCall,
  InferInput,
  InferRequestOptions,
  OutputRequest,
  TensorInput,
} from "./infer/infer-options.js";
export { InferResult } from "./infer/infer-result.js";
export { InferenceServerClient } from "./inference-server-client.js";
export type { JsonObject, JsonValue } from "./json/parse-json.js";
export type { JsonSource } from "./json/write-json.js";
export { ModelClient } from "./model/model-client.js";
export type { ModelClientOptions, ModelInferOptions } from "./model/model-client-options.js";
export { HttpStatusError } from "./transport/answer-error.js";
export type { Compression } from "./transport/compression.js";
