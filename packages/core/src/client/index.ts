/*
 * What the clients of HTTP and gRPC have in common, beside tensors: `@tritonjs/core/client`. As there, nothing that this
 * leads to imports a module of Node.js or names one of its globals.
 */
export { AnsweredTensors, type ArrayOf, type SharedMemoryOutput } from "./answered-tensors.js";
export { AnsweringModel, type AnsweringServer } from "./answering-model.js";
export { cancelled, unlessAborted } from "./cancelled.js";
export {
  type CommonCallOptions,
  type CommonClientOptions,
  DEFAULT_TIMEOUT_MS,
  retryPolicy,
  type VersionOption,
} from "./client-options.js";
export { ConcurrencyGate } from "./concurrency-gate.js";
export { Deadline, pause } from "./deadline.js";
export {
  type CommonOutputRequest,
  type InferInput,
  isSharedMemoryInput,
  type RequestOptions,
  type SequenceOptions,
  type SharedMemoryInput,
  type SharedMemoryRange,
} from "./infer-options.js";
export { type ConfigOf, KnownModel, type LoadOptionsOf, type ServerOfModel } from "./known-model.js";
export type { ModelOptions, WaitCallOptions } from "./model-options.js";
export { modelSignature, type SignatureParts } from "./model-signature.js";
export { onAbort } from "./on-abort.js";
export { requestParameters } from "./request-parameters.js";
export { resultArrays } from "./result-arrays.js";
export { type Failure, type RetryHint, type RetryPolicy, retryDelay } from "./retry.js";
