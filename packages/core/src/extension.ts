/*
 * `@tritonjs/core/extension`: the seams on which extensions of a server stand.
 */

export { EqualInputsRule, Payload } from "./batch/payload.js";
export { defaultDynamicBatching } from "./config/defaults.js";
export type {
  GpuRegionRequest,
  GpuRegions,
  Gpus,
  HoldGpuMemory,
  MappedGpuMemory,
} from "./config/gpus.js";
export type { BatcherOptions, ConfiguredBatcher } from "./config/model-options.js";
export { sequenceSlots } from "./config/sequence-batching.js";
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
export type { ParameterTable } from "./instance/backend.js";
export type { InstanceGroup, InstanceUser } from "./instance/instance-group.js";
export type { ModelInstance } from "./instance/model-instance.js";
export type { ModelPlan } from "./model/model-server.js";
export type { ModelVersion, VersionRouter } from "./model/model-version.js";
export type { ModelRegistry } from "./model/registry.js";
export type { Residence, TenantModel } from "./model/residence.js";
export type { Log } from "./observe/log.js";
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
export type { Clock, Deadline, DeadlineQueue } from "./system/clock.js";
export { LinkedList } from "./system/collections.js";
