export type {
  AnswerJson,
  AnswerJsonObject,
  ArrayOf,
  BytesArray,
  InferOptions,
  JsonSource,
  RequestSequence,
} from "@tritonjs/protocol";
export { isTimeout, Tensor, TritonError } from "@tritonjs/protocol";
export type { SharedMemoryInput, SharedMemoryRange } from "../infer-request.js";
export { InferResult, type SharedMemoryOutput } from "../infer-result.js";
export type { Compression, CudaRegion, SystemRegion, WaitCallOptions } from "../options.js";
export type {
  CallOptions,
  ClientOptions,
  Fetch,
  HttpInferInput,
  HttpTensorInput,
  InferCall,
  InferRequestOptions,
  ModelCallOptions,
  OutputRequest,
} from "./client-options.js";
export type { GenerateInputs, GenerateResponse } from "./generate.js";
export { HttpStatusError } from "./http-calls.js";
export {
  decodeInferResponse,
  type EncodedInferRequest,
  encodeInferRequest,
  type InferResponse,
} from "./infer-messages.js";
export type { LoadModelOptions, NewSettings, TraceCallOptions } from "./inference-server-client.js";
export {
  InferenceServerClient,
  ModelClient,
  type ModelClientOptions,
  type ModelInferOptions,
} from "./inference-server-client.js";
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
} from "./server-answers.js";
