/*
 * `@tritonjs/core/frontend`: everything that a custom frontend needs: the service that it calls, the requests that it
 * makes, limits, restrictions, logging and tracing.
 */

export { checkOptionNames } from "./config/schema/check-option-names.js";
export { keyList } from "./config/schema/key-list.js";
export { modelMetadata } from "./config/schema/metadata-of-config.js";
export type { OptionsElsewhere } from "./config/schema/unknown-keys.js";
export { AccessGate } from "./frontend/access-gate.js";
export { canSharePorts } from "./frontend/bound-socket.js";
export type {
  DefaultFrontends,
  FrontendAddress,
  ThreadedFrontend,
  ThreadedFrontendOptions,
  WebPages,
} from "./frontend/frontend.js";
export { headerPattern } from "./frontend/header-pattern/header-pattern.js";
export { type ListenAt, type Listening, type ListeningServer, listenOnAll } from "./frontend/listen.js";
export { HostRule, isForeign, isLoopback, SiteGuard, type SiteGuardOptions } from "./frontend/site-guard.js";
export { type ResolvedTlsOptions, resolveTls, type TlsOptions } from "./frontend/tls-options.js";
export { parseVersion } from "./model/parse-version.js";
export { pickNamespace, pickVersion, type Versions } from "./model/pick-version.js";
export type { RegisteredVersion } from "./model/registered-version.js";
export type { FailureNote } from "./observe/error-log.js";
export type { LatencyCounts } from "./observe/latency/latency-counts.js";
export { acceptFaults } from "./observe/log/accept-faults.js";
export { lineLogger } from "./observe/log/line-logger.js";
export { LOG_FORMATS, Log, type LogChanges, type LogSettings } from "./observe/log/log.js";
export type { LogEntry, LogLevel } from "./observe/log/log-tail.js";
export type { LogSubject } from "./observe/log/logger.js";
export { residentBytes } from "./observe/machine/resident-bytes.js";
export {
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  traceSettingTexts,
} from "./observe/trace/read-trace-setting.js";
export type { RequestTrace } from "./observe/trace/request-trace.js";
export type { RequestArrival } from "./observe/trace/request-tracer.js";
export type { TraceChanges, TraceLevel, TraceMode, TraceSettings } from "./observe/trace/trace-settings.js";
export { Tracing } from "./observe/trace/tracing.js";
export type { InferInit, ResponseHandler } from "./request/inference-request-init.js";
export type { InferenceResponse } from "./request/inference-response.js";
export type { RequestHandle } from "./request/request-handle.js";
export {
  freeMemory,
  freeWhenSent,
  freeWhenUsed,
  LARGE_REQUEST_BYTES,
  ownedByAnswer,
} from "./request-memory/free-memory.js";
export { UnpackFault, type UnpackFaultKind } from "./request-memory/inflate.js";
export { MemoryUsage } from "./request-memory/memory-usage.js";
export { type MemoryRefusals, RequestMemory } from "./request-memory/request-memory.js";
export type { RequestShare } from "./request-memory/request-share.js";
export { classify } from "./response/classify.js";
export { keepHeapRoom } from "./server/heap-room.js";
export { limitMalloc } from "./server/malloc-limits.js";
export { returnFreeMemory } from "./server/malloc-trim.js";
export { VERSION } from "./server/version.js";
export { Authentication } from "./service/authentication.js";
export type {
  InferenceService,
  MountedFrontend,
  PinnedModel,
  ReadyModel,
  RoomWait,
} from "./service/inference-service.js";
export type {
  ObservedActivity,
  ObservedCounters,
  ObservedInstance,
  ObservedModel,
} from "./service/inspect/observed-model.js";
export type { ServerInspector } from "./service/inspect/server-inspector.js";
export {
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  type LoadReport,
} from "./service/load-report.js";
export type { ModelReadiness } from "./service/model-readiness.js";
export {
  type AllowedHosts,
  ENDPOINT_GROUPS,
  type Restriction,
  type Restrictions,
} from "./service/restrictions.js";
export type { ServiceChange, WatchedModel, WatchedServer, WatchedVersion } from "./service/service-watch.js";
export { loadReportMessage, writeLoadReport } from "./service/write-load-report.js";
export { RegionUsers } from "./shared-memory/region-users.js";
export {
  RegisteredRegion,
  type RegisteredSystemRegion,
  type RequestedRange,
} from "./shared-memory/registered-region.js";
export { type RegionRange, RequestRegions } from "./shared-memory/request-regions.js";
export {
  type RegisteredCudaRegion,
  SharedMemory,
  type SystemRegionRequest,
  type WatchedRegion,
} from "./shared-memory/shared-memory.js";
export { DescriptorObject, type SharedObject } from "./shared-memory/shared-object.js";
