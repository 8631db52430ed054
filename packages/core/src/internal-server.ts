/*
 * `@tritonjs/core/internal/server`: what `@tritonjs/server` uses of core. It may change in any release.
 */

export type { GpuRegionRequest, GpuRegions, MappedGpuMemory } from "./config/gpus.js";
export { modelMetadata } from "./config/model-metadata.js";
export {
  ENDPOINT_GROUPS,
  type EndpointGroup,
  type ExtensionPage,
  type ManagementOperation,
  type ManagementRequest,
  type ManagementRoute,
} from "./extension/extension.js";
export type {
  LoadParameters,
  ModelControlMode,
  ModelSource,
  UnloadParameters,
} from "./extension/model-source.js";
export type {
  Frontend,
  FrontendAddress,
  FrontendServer,
  FrontendThreads,
  MountedFrontend,
} from "./frontend/frontend.js";
export type {
  AccessGroup,
  AllowedHosts,
  Authenticate,
  AuthenticationOptions,
  AuthenticationRequest,
  RequestMemoryOptions,
  SecurityOptions,
  ServiceOptions,
} from "./frontend/service-options.js";
export type { ModelRequests } from "./model/model-requests.js";
export { ModelVersion } from "./model/model-version.js";
export { parseVersion, pickNamespace, pickVersion } from "./model/pick-version.js";
export { saysReady, unreadyReason } from "./model/readiness.js";
export type { ModelRegistry } from "./model/registry.js";
export type { ModelState, QueueSnapshot, RegisteredVersion } from "./model/version-status.js";
export { Log, type LogChanges, type LogLevel, type LogSettings, type LogSubject } from "./observe/log.js";
export { applyMetricChange, type CollectedFamily, gauge } from "./observe/metric-families.js";
export type { MetricsPage, MetricsText } from "./observe/metrics-page.js";
export type { CacheUsage } from "./observe/model-families.js";
export type { RequestArrival, RequestTrace } from "./observe/request-trace.js";
export {
  type DeadlineClass,
  type FailureNote,
  type FailureReason,
  type LatencyHistogram,
  LatencyWatch,
} from "./observe/statistics.js";
export { reportStatistics } from "./observe/statistics-report.js";
export type { TraceChanges, TraceSettings } from "./observe/trace-settings.js";
export { Tracing } from "./observe/tracing.js";
export { type Koffi, type NativeLibrary, requireKoffi, unbundledRequire } from "./optional-packages.js";
export { type Client, ClientGone, type ClientSender, sendFor } from "./request/client.js";
export {
  InferenceRequest,
  type InferInit,
  type RequestHandle,
  type RequestSender,
  requestOf,
} from "./request/inference-request.js";
export { classify, type InferenceResponse } from "./request/inference-response.js";
export { type ReadHeaders, readScalarParameter, scalarParameters, writtenScalars } from "./request-info.js";
export type { SequenceCounts } from "./scheduler/scheduler.js";
export { type Clock, realClock } from "./system/clock.js";
export { getOrAdd, LinkedList } from "./system/collections.js";
export { VERSION } from "./version.js";
export { RestartPause } from "./worker/restarts.js";
