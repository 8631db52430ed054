/*
 * `@tritonjs/core/diagnostics`: the diagnostics channels of a server with the types of their messages, and the interface
 * of tracers.
 */

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
} from "./observe/diagnostics-channels.js";
export { type ExecutionListener, onDiagnostics, onExecution } from "./observe/diagnostics-channels.js";
export {
  BaseTrace,
  type RequestArrival,
  type RequestOrigin,
  type RequestTrace,
  type RequestTracer,
  type TracedBatch,
  type TracedRequest,
} from "./observe/request-trace.js";
export type { CutReason, ExecutionTimes, LateCause } from "./observe/statistics.js";
