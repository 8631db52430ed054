/*
 * `@tritonjs/core/internal`: what the other packages of tritonjs use of core. It may change in any release.
 */

export { type AskedModel, askWorker } from "./backends/ask-worker.js";
export { describeInWorker } from "./backends/describe-in-worker.js";
export { loadTimeoutMs, notFound } from "./backends/read-model-source.js";
export { joinInputsIn, type Tensors } from "./batch/batch-tensors.js";
export {
  type InstanceDevice,
  type InstanceInfo,
  type ModelCaller,
  RESCHEDULE,
  type TensorAnswer,
  type TensorCaller,
} from "./callback/infer-func.js";
export { planInstances } from "./config/instance-groups.js";
export { withInputs } from "./instance/callback-context.js";
export { heldByInstance } from "./instance/inline-executor.js";
export { totalRows } from "./instance/run-callable.js";
export { type LogSubject, runningFields } from "./observe/log.js";
export {
  ASYNC_STACK_BYTES,
  type Koffi,
  type NativeFunction,
  type NativeLibrary,
  requireKoffi,
} from "./optional-packages.js";
export { OutputChecker } from "./request/output-checker.js";
export { type Clock, settledWithin, type Timer } from "./system/clock.js";
export type { Allocate } from "./tensor-rows.js";
export { OpenedWorker, prepareWorkers } from "./worker/open-worker.js";
export { Restarts } from "./worker/restarts.js";
export type { OpenModel } from "./worker/serve-models.js";
export { BatchesOfWorker, type BatchOfWorker, WorkerExecutor } from "./worker/worker-executor.js";
