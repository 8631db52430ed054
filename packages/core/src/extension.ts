/*
 * `@tritonjs/core/extension`: the seams on which extensions of a server stand, and the checks of configurations that a
 * source of models makes.
 */

export { EqualInputsRule, Payload } from "./batch/payload.js";
export { ENSEMBLE_PLATFORM } from "./config/ensemble.js";

export {
  type DeviceNames,
  type GpuRegionRequest,
  type GpuRegions,
  type Gpus,
  type HoldGpuMemory,
  type MappedGpuMemory,
  NO_GPUS,
} from "./config/gpus.js";

export {
  completeInstanceGroups,
  hostPolicyOf,
  instanceGroupProblems,
  planInstances,
} from "./config/instance-groups.js";
export { type BatcherOptions, type ConfiguredBatcher, namedNumbers } from "./config/model-options.js";
export {
  membersProblems,
  normalizeConfig,
  responseCacheProblems,
  schedulingProblems,
  sizeProblems,
} from "./config/resolve-config.js";
export {
  initialStates,
  sequenceSlots,
  sequenceTensors,
  validateSequenceStates,
} from "./config/sequence-batching.js";
export { batchInputTypeProblems, validateModelIo } from "./config/validate-model-io.js";
export {
  ENDPOINT_GROUPS,
  type EndpointGroup,
  type Extension,
  type ExtensionPage,
  type ExtensionParts,
  type ExtensionServer,
  type ManagementOperation,
  type ManagementRequest,
  type ManagementRoute,
  type UnbatchedModel,
} from "./extension/extension.js";
export {
  controlDisabled,
  indexEntry,
  type LoadParameters,
  type ModelControlMode,
  type ModelSource,
  type StartUp,
  type UnloadParameters,
} from "./extension/model-source.js";
export type { ParameterTable } from "./instance/backend.js";
export type { InstanceGroup, InstanceUser } from "./instance/instance-group.js";
export type { ModelInstance } from "./instance/model-instance.js";
export { migrationObstacle } from "./model/migration.js";
export { type ExecutorFactory, type ModelPlan, noExecutor } from "./model/model-server.js";
export type { ModelVersion, VersionRouter } from "./model/model-version.js";
export type { ModelRegistry } from "./model/registry.js";
export type { Residence, TenantModel } from "./model/residence.js";
export type { RegisteredVersion } from "./model/version-status.js";
export { Log } from "./observe/log.js";
export type { CollectedFamily, Series } from "./observe/metric-families.js";
export type { RequestTracer } from "./observe/request-trace.js";
export type { LateCause } from "./observe/statistics.js";
export {
  costOf,
  type InferenceRequest,
  type RequestHolder,
  type SchedulerExtra,
  startOf,
} from "./request/inference-request.js";
export type { ReadHeaders, RequestInfo } from "./request-info.js";
export type { AroundScheduling, SchedulingSettings } from "./scheduler/around-scheduling.js";
export type { BatchedModel, Batcher, SlotPlan, SlotPlanner } from "./scheduler/batcher.js";
export { DynamicBatchScheduler } from "./scheduler/dynamic/dynamic-batch-scheduler.js";
export type { BatchingRules, BatchPlan, BatchPlanner } from "./scheduler/dynamic/form-batch.js";
export { padsOfConfig } from "./scheduler/dynamic/grouping-scheduler.js";
export {
  type BatcherQueue,
  classLevelOf,
  freePlacesOf,
  isBounded,
  levelOf,
  PriorityQueue,
  placesLeft,
  policyOf,
  type QueuedRequestView,
  type QueueTotals,
} from "./scheduler/dynamic/priority-queue.js";
export {
  isPartOfWork,
  type KnownLimits,
  type LevelStatus,
  type Scheduler,
  type SequenceCounts,
  stoppedError,
} from "./scheduler/scheduler.js";
export {
  type Clock,
  type Deadline,
  type DeadlineQueue,
  everyMs,
  quietTimers,
  realClock,
  sleep,
  type Timer,
} from "./system/clock.js";
export { LinkedList } from "./system/collections.js";
export type { HostPolicies } from "./system/host-policy.js";
