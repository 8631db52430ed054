/*
 * `@tritonjs/core/types`: types that the declarations of a program may have to name, but that programs rarely write
 * themselves.
 */

export type {
  ArrayOf,
  BatchInputSpec,
  BatchOutputSpec,
  BytesArray,
  Isolation,
  PlainObject,
  RecycleOptions,
  ResultOf,
} from "@tritonjs/protocol";
export type { InferFuncOption } from "./binding/bind-options.js";
export type { InstanceChange } from "./binding/instance-changes.js";
export type { InstanceStatus, ModelStatus } from "./binding/model-handle.js";
export type { DecoratesMethod, MethodDecoratorContext } from "./callable/decorate.js";
export type { FirstValueOptions } from "./callable/first-value.js";
export type { GroupByValuesOptions, GroupOutputs, GroupPadFunction } from "./callable/group-by-values.js";
export type { InstanceDevice, InstanceInfo, RequestScope } from "./callable/infer-context.js";
export type { AnyTensorFunc, PlainInferFunc } from "./callable/infer-func.js";
export type { CallInputs, CallOutputs, ContextCallOptions, ModelCaller } from "./callable/model-caller.js";
export type { EnsembleOptions } from "./config/options/ensemble-options.js";
export type { SequenceStateOption } from "./config/options/sequence-state-options.js";
export type {
  BatchingRequest,
  BatchKey,
  BatchPadFunction,
  PadValue,
} from "./config/options/variable-length-options.js";
export type { HostPolicies } from "./config/placement/host-policy.js";
export type { InstancePlacement } from "./config/placement/instances.js";
export type { JsModelClass, JsModelControl, JsModelLogger } from "./instance/module/js-model.js";
export type { JsMetricLabels, JsMetricOptions, JsModelMetrics } from "./instance/module/model-metrics.js";
export type { RateLimitResource } from "./instance/rate-limiter/resource-pools.js";
export type { InstanceQueueSnapshot, PayloadSnapshot, QueueLevelSnapshot } from "./model/queue-snapshot.js";
export type { ModelState } from "./model/registered-version.js";
export type { CacheUsage } from "./observe/cache-metrics.js";
export type { Cut, CutReason } from "./observe/cut-log.js";
export type { LogFormat } from "./observe/log/log.js";
export type { LogSubject, SubjectLogger } from "./observe/log/logger.js";
export type { MetricsReportOptions, MetricsText } from "./observe/metrics-page.js";
export type { TraceLevelOption } from "./observe/trace/trace-options.js";
export type { LoadParameters, UnloadParameters } from "./repository/load-parameters.js";
export type { BackendConfig, ModelControlMode } from "./repository/repository-options.js";
export type { EvictionListener, EvictionReason } from "./request/sequence-info.js";
export type { ResponseParameters } from "./response/response-parameters.js";
export type { FrontendThreads } from "./server/frontend-threads.js";
export type { Authenticate, AuthenticationRequest } from "./service/authentication.js";
export type { AccessGroup, EndpointGroup } from "./service/restrictions.js";
