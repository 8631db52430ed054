/*
 * `@tritonjs/core/frontend`: everything that a custom frontend needs: the service that it calls, the requests that it
 * makes, limits, restrictions, logging and tracing.
 */

export { modelMetadata } from "./config/model-metadata.js";
export type { OptionsElsewhere } from "./config/option-names.js";
export { checkOptionNames, keyList } from "./config/option-names.js";
export { forwardHeaders, headerPattern } from "./frontend/header-pattern.js";
export {
  canSharePorts,
  type ListenAt,
  type Listening,
  type ListeningServer,
  listenOnAll,
  type ResolvedTlsOptions,
  resolveTls,
  type TlsOptions,
} from "./frontend/listen.js";
export { HostRule, isForeign, isLoopback, SiteGuard, type SiteGuardOptions } from "./frontend/security.js";
export type {
  DefaultFrontends,
  FrontendAddress,
  ThreadedFrontend,
  ThreadedFrontendOptions,
  WebPages,
} from "./frontend/serve-frontends.js";
export { parseVersion, pickNamespace, pickVersion, type Versions } from "./model/pick-version.js";
export type { RegisteredVersion } from "./model/version-status.js";
export { lineLogger } from "./observe/create-log.js";
export type { LatencyCounts } from "./observe/durations.js";
export type { LogEntry, LogLevel, LogSubject } from "./observe/log.js";
export { acceptFaults, LOG_FORMATS, Log, type LogChanges, type LogSettings } from "./observe/log.js";
export type { RequestArrival, RequestTrace } from "./observe/request-trace.js";
export type { FailureNote } from "./observe/statistics.js";
export type { TraceChanges, TraceLevel, TraceMode, TraceSettings } from "./observe/trace-settings.js";
export {
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  traceSettingTexts,
} from "./observe/trace-settings.js";
export { Tracing } from "./observe/tracing.js";
export type { InferInit, RequestHandle, ResponseHandler } from "./request/inference-request.js";
export type { InferenceResponse } from "./request/inference-response.js";
export { classify } from "./request/inference-response.js";
export type { RequestShare } from "./request/request-memory.js";
export {
  freeMemory,
  freeWhenSent,
  freeWhenUsed,
  LARGE_REQUEST_BYTES,
  type MemoryRefusals,
  MemoryUsage,
  ownedByAnswer,
  RequestMemory,
  UnpackFault,
  type UnpackFaultKind,
} from "./request/request-memory.js";
export {
  AccessGate,
  type AllowedHosts,
  Authentication,
  ENDPOINT_GROUPS,
  type Restriction,
  type Restrictions,
} from "./service/access-control.js";
export {
  type Client,
  ClientGone,
  Exchange,
  type ExchangeOptions,
  type ResponseSink,
} from "./service/exchange.js";
export type {
  InferenceService,
  MountedFrontend,
  PinnedModel,
  ReadyModel,
  RoomWait,
} from "./service/inference-service.js";
export type { ModelReadiness } from "./service/model-reports.js";
export {
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  type LoadReport,
  loadReportMessage,
  writeLoadReport,
} from "./service/model-reports.js";
export type {
  ObservedActivity,
  ObservedCounters,
  ObservedInstance,
  ObservedModel,
  ServerInspector,
} from "./service/server-inspector.js";
export type { ServiceChange, WatchedModel, WatchedServer, WatchedVersion } from "./service/service-watch.js";
export {
  type RegionRange,
  RegionUsers,
  type RegisteredCudaRegion,
  RegisteredRegion,
  type RegisteredSystemRegion,
  type RequestedRange,
  RequestRegions,
  SharedMemory,
  type SystemRegionRequest,
  type WatchedRegion,
} from "./shared-memory/shared-memory.js";
export { DescriptorObject, type SharedObject } from "./shared-memory/shared-object.js";
export { residentBytes } from "./system/start-process.js";
export { keepHeapRoom, limitMalloc, returnFreeMemory } from "./triton/process-memory.js";
export { VERSION } from "./version.js";
