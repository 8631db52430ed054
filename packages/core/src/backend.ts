/*
 * `@tritonjs/core/backend`: interfaces for custom backends.
 */
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
export {
  type ChangeGauge,
  type ContinuousWorkerOptions,
  continuousWorker,
  gaugesOf,
} from "./instance/stepwise/continuous-worker.js";
export type {
  WorkerBatch,
  WorkerEntry,
  WorkerHost,
  WorkerModel,
  WorkerResponseStream,
} from "./instance/worker/worker-model.js";
