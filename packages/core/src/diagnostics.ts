/*
 * `@tritonjs/core/diagnostics`: the diagnostics channels of a server with the types of their messages, and the interface
 * of tracers.
 */

export type { CutReason } from "./observe/cut-log.js";
export type {
  BatchMessage,
  DiagnosedRequest,
  DiagnosticMessages,
  InstanceRestartMessage,
  ModelStateMessage,
  RequestQueuedMessage,
  RequestRefusedMessage,
  RequestResponseMessage,
  RequestSettledMessage,
  RequestStartMessage,
} from "./observe/diagnostics/messages.js";
export { type ExecutionListener, onDiagnostics, onExecution } from "./observe/diagnostics/subscribe.js";
export type { ExecutionTimes } from "./observe/duration.js";
export type { RequestTrace, TracedBatch, TracedRequest } from "./observe/trace/request-trace.js";
export type { RequestArrival, RequestOrigin, RequestTracer } from "./observe/trace/request-tracer.js";
