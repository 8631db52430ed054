/*
 * `@tritonjs/core/frontend`: what a custom frontend needs: the service that it calls, the requests that it makes, limits,
 * restrictions, logging and tracing.
 */

export { modelMetadata } from "./config/model-metadata.js";
export {
  type ListenAt,
  type Listening,
  type ListeningServer,
  listenOnAll,
  type ResolvedTlsOptions,
  resolveTls,
  type TlsOptions,
} from "./frontend/listen.js";
export { SiteGuard, type SiteGuardOptions } from "./frontend/security.js";
export type { FrontendAddress } from "./frontend/serve-frontends.js";
export { parseVersion } from "./model/pick-version.js";
export { Log, type LogLevel, type LogSettings } from "./observe/log.js";
export type { RequestTrace } from "./observe/request-trace.js";
export { Tracing } from "./observe/tracing.js";
export type { InferInit } from "./request/inference-request.js";
export { classify, type InferenceResponse } from "./request/inference-response.js";
export { RequestMemory, type RequestShare } from "./request/request-memory.js";
export {
  AccessGate,
  type AllowedHosts,
  Authentication,
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
  FoundModel,
  InferenceService,
  MountedFrontend,
  ReadyModel,
} from "./service/inference-service.js";
export type { ModelReadiness } from "./service/model-reports.js";
