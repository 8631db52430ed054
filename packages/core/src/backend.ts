/*
 * `@tritonjs/core/backend`: interfaces for custom backends.
 */

export { hostingOf } from "./backends/hosting-parameters.js";
export { findModelFile, type ModelFile, type ModelLocation } from "./backends/model-file.js";
export type {
  Backend,
  BackendFactory,
  ExecutorContext,
  ModelDescription,
  ModelSource,
  TypedBackend,
} from "./instance/backend.js";
export { callbackExecutor } from "./instance/callback-executor.js";
export type {
  ExecutableRequest,
  Execution,
  ExecutionResult,
  ExecutionWatcher,
  Executor,
} from "./instance/executor.js";
export { divideOutputs, joinInputs } from "./instance/join-batch.js";
export {
  type ChangeGauge,
  type ContinuousWorkerOptions,
  continuousWorker,
  gaugesOf,
} from "./instance/stepwise/continuous-worker.js";
export { workerExecutor } from "./instance/worker/program-executor.js";
export type {
  WorkerBatch,
  WorkerEntry,
  WorkerHost,
  WorkerModel,
  WorkerResponseStream,
  WorkerResult,
} from "./instance/worker/worker-model.js";
export type { WorkerProgram } from "./instance/worker/worker-program.js";
export { OutputsWithParameters, type ResponseParameters } from "./response/response-parameters.js";
