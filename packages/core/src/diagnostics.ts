/*
 * `@tritonjs/core/diagnostics`: the diagnostics channels of a server with the types of their messages.
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
  RequestSettledMessage,
  RequestStartMessage,
} from "./observe/diagnostics/messages.js";
export { type ExecutionListener, onDiagnostics, onExecution } from "./observe/diagnostics/subscribe.js";
