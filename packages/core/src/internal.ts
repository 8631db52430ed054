/*
 * `@tritonjs/core/internal`: what the other packages of tritonjs use of core. It may change in any release.
 */

export { type AskedModel, askWorker } from "./backends/ask-worker.js";
export {
  DeclaredParameters,
  MODEL_DIRECTORY,
  SHARED_PARAMETERS,
  SUBSTITUTED,
  useOf,
} from "./backends/declared-parameters.js";
export {
  loadTimeoutMs,
  notFound,
  ParameterReader,
  wrongParameter,
} from "./backends/read-model-source.js";
export { joinInputsIn, type Tensors } from "./batch/batch-tensors.js";
export { EqualInputsRule, type Payload } from "./batch/payload.js";
export { bindingOf, moduleProgram } from "./bind/plan-module.js";
export {
  type InstanceInfo,
  type ModelCaller,
  RESCHEDULE,
  type TensorAnswer,
  type TensorCaller,
} from "./callback/infer-func.js";
export type { DeviceId } from "./callback/instance-device.js";
export { completeStep } from "./config/auto-complete-config.js";
export type { PlannedInstance } from "./config/instance-groups.js";
export type { DefaultFrontends } from "./frontend/serve-frontends.js";
export { withInputs } from "./instance/callback-context.js";
export { heldByInstance, inlineRequests, nextTurn } from "./instance/inline-executor.js";
export { InstanceGroup, type InstanceUser } from "./instance/instance-group.js";
export { type InstanceModel, ModelInstance } from "./instance/model-instance.js";
export { createRateLimiter, type RateLimiter } from "./instance/rate-limiter.js";
export { requestedBy, totalRows } from "./instance/run-callable.js";
export { StepwiseExecutor } from "./instance/stepwise-executor.js";
export { createScheduler } from "./model/model-version.js";
export { lineLogger } from "./observe/create-log.js";
export { acceptFaults, LOG_FORMATS, type LogSubject, runningFields } from "./observe/log.js";
export {
  type DeadlineClass,
  LatencyHistogram,
  ModelStatistics,
  OCTAVE_BOUNDS_MS,
} from "./observe/statistics.js";
export {
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  type TraceChanges,
  type TraceMode,
  traceSettingTexts,
} from "./observe/trace-settings.js";
export {
  ASYNC_STACK_BYTES,
  findInstalled,
  importInstalled,
  importPeer,
  type Koffi,
  type NativeFunction,
  type NativeLibrary,
  notLoaded,
  requireKoffi,
} from "./optional-packages.js";
export {
  InferenceRequest,
  type RequestHandle,
  type RequestObserver,
  type RequestSender,
} from "./request/inference-request.js";
export { OutputChecker } from "./request/inference-response.js";
export {
  lengthLimitOf,
  type QueueOptions,
  queueOptions,
  type RequestScalars,
  readScalarOptions,
  readScalarParameter,
  readTracedQueueOptions,
  type ScalarReader,
  scalarOptions,
} from "./request-info.js";
export { Heap } from "./scheduler/dynamic/priority-queue.js";
export type { LevelStatus, Scheduler, SequenceCounts } from "./scheduler/scheduler.js";
export {
  Alarm,
  type Clock,
  DeadlineQueue,
  everyMs,
  quietClock,
  quietTimers,
  realClock,
  settledWithin,
  sleep,
  type Timer,
  VirtualClock,
} from "./system/clock.js";
export { type Linked, LinkedList } from "./system/collections.js";
export {
  assertInRepository,
  dataFilesOf,
  exists,
  PRIVATE_DIRECTORY,
  PRIVATE_FILE,
  readSmallFile,
} from "./system/files.js";
export { residentBytes } from "./system/start-process.js";
export { type Allocate, concatRows, copyTensor, sliceRows } from "./tensor-rows.js";
export { VERSION } from "./version.js";
export { unpackError, type WireError } from "./worker/messages.js";
export { ThreadEnding } from "./worker/native-calls.js";
export { OpenedWorker, ownProgram, prepareWorkers } from "./worker/open-worker.js";
export { Restarts } from "./worker/restarts.js";
export type { OpenModel } from "./worker/serve-models.js";
export {
  BatchesOfWorker,
  type BatchOfWorker,
  OpenExecutions,
  WorkerExecutor,
} from "./worker/worker-executor.js";
