/*
 * `@tritonjs/server`: what servers of every protocol share, and what a custom frontend needs: the service that it calls,
 * the requests that it makes, limits, restrictions, logging and tracing.
 */

export {
  type AllowedHosts,
  type Client,
  ClientGone,
  classify,
  type FrontendAddress,
  type FrontendServer,
  type InferenceResponse,
  type InferInit,
  Log,
  type LogLevel,
  type LogSettings,
  type MountedFrontend,
  modelMetadata,
  parseVersion,
  type RequestTrace,
  Tracing,
} from "@tritonjs/core/internal/server";
export { AccessGate, Authentication, type Restriction, type Restrictions } from "./access/access-control.js";
export { SiteGuard, type SiteGuardOptions } from "./access/security.js";
export {
  type ListenAt,
  type Listening,
  type ListeningServer,
  listenOnAll,
  type ResolvedTlsOptions,
  resolveTls,
  type TlsOptions,
} from "./frontend/listen.js";
export type {
  ServiceFrontend,
  ThreadedFrontend,
  ThreadedFrontendOptions,
  WebPages,
} from "./frontend/service-frontend.js";
export { placeInThreads } from "./frontend-threads/place-frontends.js";
export { Exchange, type ExchangeOptions, type ResponseSink } from "./service/exchange.js";
export type { FoundModel, InferenceService, ReadyModel } from "./service/inference-service.js";
export type { LoadReport, ModelReadiness } from "./service/model-reports.js";
export {
  type MemoryRefusals,
  type MemoryUsage,
  RequestMemory,
  type RequestShare,
  type UnpackFaultKind,
} from "./service/request-memory.js";
export type { ObservedActivity } from "./service/server-inspector.js";
export { type Served, serviceOf } from "./service/service-of.js";
export type { ServiceChange, WatchedModel, WatchedServer, WatchedVersion } from "./service/service-watch.js";
export type {
  RegisteredCudaRegion,
  RegisteredRegion,
  RegisteredSystemRegion,
  SystemRegionRequest,
  WatchedRegion,
} from "./shared-memory/shared-memory.js";
