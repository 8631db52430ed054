/*
 * `@tritonjs/core/backend`: interfaces for custom backends.
 */

export { findModelFile, type ModelFile, type ModelLocation } from "./backends/model-file.js";
export type {
  Backend,
  BackendFactory,
  ExecutorContext,
  ModelDescription,
  ModelSource,
} from "./instance/backend.js";
export { callbackExecutor } from "./instance/callback-executor.js";
export type {
  ExecutableRequest,
  Execution,
  ExecutionResult,
  ExecutionWatcher,
  Executor,
} from "./instance/executor.js";
export { workerExecutor } from "./instance/worker/program-executor.js";
export type { WorkerBatch, WorkerModel, WorkerResult } from "./instance/worker/worker-model.js";
export type { WorkerProgram } from "./instance/worker/worker-program.js";
