/*
 * `@tritonjs/core/types`: types that the declarations of a program may have to name, but that programs rarely write
 * themselves.
 */

export type {
  ArrayOf,
  BatchInputSpec,
  BatchOutputSpec,
  BytesArray,
  CallByPosition,
  Isolation,
  NamedInputs,
  NamedOutputs,
  PlainObject,
  RecycleOptions,
  ResultOf,
  TensorSpecs,
  ValuesArray,
} from "@tritonjs/protocol";
export type { InferFuncOption, RebindOptions } from "./bind/bind-options.js";
export type { InstanceStatus, ModelStatus } from "./bind/model-handle.js";
export type { InstanceChange } from "./bind/plan-executors.js";
export type { FillOptionals } from "./callback/batch-decorators.js";
export type { DecoratesMethod, MethodDecoratorContext } from "./callback/decorate.js";
export type {
  AnyTensorFunc,
  CallInputs,
  CallOutputs,
  ContextCallOptions,
  InstanceInfo,
  ModelCaller,
  PlainInferFunc,
} from "./callback/infer-func.js";
export type { DeviceId, InstanceDevice } from "./callback/instance-device.js";
export type {
  FirstValue,
  FirstValueOptions,
  GroupByValues,
  GroupByValuesOptions,
  GroupOutputs,
  GroupPadFunction,
} from "./callback/row-decorators.js";
export type { EnsembleOptions } from "./config/ensemble.js";
export type { InstancePlacement } from "./config/instance-groups.js";
export type {
  BatchingRequest,
  BatchKey,
  BatchPadFunction,
  PadValue,
} from "./config/model-options.js";
export type { SequenceStateOption } from "./config/sequence-options.js";
export type { LoadParameters, ModelControlMode, UnloadParameters } from "./extension/model-source.js";
export type {
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
  ServiceOptions,
} from "./frontend/service-options.js";
export type {
  JsMetricLabels,
  JsMetricOptions,
  JsModelClass,
  JsModelControl,
  JsModelLogger,
  JsModelMetrics,
} from "./instance/js-model.js";
export type { RateLimitResource } from "./instance/rate-limiter.js";
export type {
  InstanceQueueSnapshot,
  ModelState,
  PayloadSnapshot,
  QueueLevelSnapshot,
  RegisteredVersion,
} from "./model/version-status.js";
export type { LogChanges, LogEntry, LogFormat, LogSubject, SubjectLogger } from "./observe/log.js";
export type { MetricsReportOptions, MetricsText } from "./observe/metrics-page.js";
export type { CacheUsage } from "./observe/model-families.js";
export type { RequestArrival } from "./observe/request-trace.js";
export type { Cut, CutReason, FailureNote } from "./observe/statistics.js";
export type { TraceLevel, TraceLevelOption, TraceSettings } from "./observe/trace-settings.js";
export type { ResponseParameters } from "./request/inference-response.js";
export type { EvictionListener, EvictionReason, RequestScope } from "./request-info.js";
export type { HostPolicies } from "./system/host-policy.js";
