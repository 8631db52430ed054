import { TritonError } from "@tritonjs/protocol";
import { keyList } from "../../config/schema/key-list.js";
import type { LogSubject } from "../../observe/log/logger.js";
import { type FromWorker, packError, type ToWorker } from "./messages.js";
import type { WorkerContext } from "./worker-context.js";

/**
 * Messages of a model besides its answers: warnings, reports to its backend, lines for the log, changes of metrics,
 * requests to the server.
 */
export type HostMessage = Extract<FromWorker, { type: "warning" | "report" | "log" | "metrics" | "ask" }>;

const KINDS: ReadonlySet<FromWorker["type"]> = new Set(
  keyList<Record<HostMessage["type"], unknown>>({
    warning: true,
    report: true,
    log: true,
    metrics: true,
    ask: true,
  }),
);

export function isHostMessage(message: FromWorker): message is HostMessage {
  return KINDS.has(message.type);
}

/**
 * Forwards the messages of a model besides its answers.
 *
 * @param running returns the fields of lines about the requests that the worker has now
 */
export function tellHost(
  message: HostMessage,
  { info, warn, host, onReport }: WorkerContext,
  post: (message: ToWorker) => void,
  running: () => LogSubject,
): void {
  if (message.type === "warning") warn(`model '${info.modelName}': ${message.message}`);
  else if (message.type === "report") onReport?.(message.value);
  else if (message.type === "log") host?.log(message.line, running());
  else if (message.type === "metrics") host?.changeMetrics(message.changes);
  else {
    const { number, ask } = message;
    const asked = host?.control(ask) ?? Promise.reject(notServed(info.modelName));
    asked.then(
      (value) => post({ type: "answered", number, value: value === true }),
      (thrown) => post({ type: "answered", number, error: packError(thrown) }),
    );
  }
}

function notServed(modelName: string): TritonError {
  return new TritonError("UNAVAILABLE", `model '${modelName}' runs without a server, so it cannot ask one`, {
    reason: "NO_SERVER",
  });
}
