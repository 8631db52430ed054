/*
 * `@tritonjs/core/extension`: the seams on which extensions of a server stand.
 */

export type {
  GpuRegionRequest,
  GpuRegions,
  Gpus,
  HoldGpuMemory,
  MappedGpuMemory,
} from "./config/gpus.js";
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
} from "./extension/extension.js";
export type { ParameterTable } from "./instance/backend.js";
export type { ModelPlan } from "./model/model-server.js";
export type { ModelVersion, VersionRouter } from "./model/model-version.js";
export type { ModelRegistry } from "./model/registry.js";
export type { Residence, TenantModel } from "./model/residence.js";
export type { Log } from "./observe/log.js";
export type { CollectedFamily, Series } from "./observe/metric-families.js";
export type { RequestTracer } from "./observe/request-trace.js";
export type { InferenceRequest } from "./request/inference-request.js";
export type { RequestInfo } from "./request-info.js";
export type { AroundScheduling, SchedulingSettings } from "./scheduler/around-scheduling.js";
export type { Clock } from "./system/clock.js";
