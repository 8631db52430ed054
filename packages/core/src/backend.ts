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
