/*
 * `@tritonjs/core/backend`: interfaces for custom backends.
 */
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
export { divideOutputs, joinInputs } from "./instance/join-batch.js";
export { OutputsWithParameters, type ResponseParameters } from "./response/response-parameters.js";
