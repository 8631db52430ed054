export type { ArrayOf, BytesArray, InferOptions, RequestSequence } from "@tritonjs/protocol";
export { isTimeout, Tensor, TritonError } from "@tritonjs/protocol";
export { InferResult, type SharedMemoryOutput } from "../infer/infer-result.js";
export type { Compression } from "../options/client-options.js";
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
export type { CallOptions, ClientOptions, Fetch, ModelCallOptions } from "./client-options.js";
export type { GenerateInputs, GenerateResponse } from "./generate/generate.js";
export { decodeInferResponse, type InferResponse } from "./infer/decode-infer-response.js";
export { type EncodedInferRequest, encodeInferRequest } from "./infer/encode-infer-request.js";
export type {
  HttpInferInput,
  HttpTensorInput,
  InferCall,
  InferRequestOptions,
  OutputRequest,
} from "./infer/infer-options.js";
export { InferenceServerClient } from "./inference-server-client.js";
export type { AnswerJson, AnswerJsonObject } from "./json/parse-json.js";
export type { JsonSource } from "./json/write-json.js";
export { ModelClient, type ModelClientOptions, type ModelInferOptions } from "./model-client.js";
