/*
 * `@tritonjs/core/backend`: interfaces for custom backends.
 */

export {
  findModelDirectory,
  findModelFile,
  hostingOf,
  type ModelFile,
  type ModelLocation,
} from "./backends/read-model-source.js";
export { divideOutputs, joinInputs } from "./batch/batch-tensors.js";
export {
  AutoCompleteConfig,
  type AutoCompleteTensor,
  type CompletionMethod,
} from "./config/auto-complete-config.js";
export type {
  Backend,
  BackendFactory,
  Execution,
  ExecutionResult,
  ExecutionWatcher,
  Executor,
  ExecutorContext,
  InputCheck,
  ModelDescription,
  ModelFiles,
  ParameterTable,
  ParameterUse,
  TypedBackend,
} from "./instance/backend.js";
export { OutputsWithParameters, type ResponseParameters } from "./request/inference-response.js";
export type { ExecutableRequest } from "./request-info.js";
export {
  type ChangeGauge,
  type ContinuousWorkerOptions,
  callbackExecutor,
  continuousWorker,
  gaugesOf,
  workerExecutor,
} from "./worker/backend-executors.js";
export type { WorkerProgram } from "./worker/open-worker.js";
export type {
  WorkerBatch,
  WorkerEntry,
  WorkerHost,
  WorkerModel,
  WorkerResponseStream,
  WorkerResult,
} from "./worker/serve-models.js";
