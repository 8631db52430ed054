import type { FromWorker } from "./messages.js";
import type { WorkerContext } from "./worker-program.js";

/** What a model says that is no answer: warnings, lines for the log, changes of metrics. */
export type HostMessage = Extract<FromWorker, { type: "warning" | "log" | "metrics" }>;

export function isHostMessage(message: FromWorker): message is HostMessage {
  return message.type === "warning" || message.type === "log" || message.type === "metrics";
}

/** Passes on what a model says beside its answers. */
export function tellHost(message: HostMessage, { info, warn, host }: WorkerContext): void {
  if (message.type === "warning") warn(`model '${info.modelName}': ${message.message}`);
  else if (message.type === "log") host?.log(message.line);
  else host?.changeMetrics(message.changes);
}
