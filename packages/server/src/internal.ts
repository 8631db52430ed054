/*
 * `@tritonjs/server/internal`: what the other packages of tritonjs use of the server. It may change in any release.
 */

export { HostRule, isForeign, isLoopback } from "./access/security.js";
export { forwardHeaders, type HeaderPattern, headerPattern } from "./frontend/header-pattern.js";
export { grpcTimeoutMs, readCallerHeaders } from "./service/caller-headers.js";
export {
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  loadReportMessage,
  writeLoadReport,
} from "./service/model-reports.js";
export type { PlaceInLine, RefusalLine, WaitedQueue } from "./service/refusal-line.js";
export {
  freeMemory,
  freeWhenSent,
  freeWhenUsed,
  LARGE_REQUEST_BYTES,
  ownedByAnswer,
  UnpackFault,
} from "./service/request-memory.js";
export type {
  ObservedCounters,
  ObservedInstance,
  ObservedModel,
  ServerInspector,
} from "./service/server-inspector.js";
export { type RegionRange, type RequestedRange, SharedMemory } from "./shared-memory/shared-memory.js";
