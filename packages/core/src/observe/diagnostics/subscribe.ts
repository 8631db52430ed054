import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import type { BatchMessage, DiagnosticMessages } from "./messages.js";

/**
 * Subscribes to a channel, as `subscribe` of `node:diagnostics_channel` does, with the type of its messages. The channel
 * has the messages of all servers in the process.
 *
 * @param listener called within the server's work, so it must be quick; an error that it throws ends the process, as for
 * all channels of Node.js
 * @returns function that ends the subscription
 * @example
 * ```ts
 * const end = onDiagnostics("tritonjs:batch:formed", ({ model, batchSize, cut }) => {
 *   console.log(`${model}: ${batchSize} rows, because of ${cut}`);
 * });
 * ```
 */
export function onDiagnostics<Name extends keyof DiagnosticMessages>(
  name: Name,
  listener: (message: DiagnosticMessages[Name]) => void,
): () => void {
  const untyped = (message: unknown) => listener(message as DiagnosticMessages[Name]);
  subscribe(name, untyped);
  return () => void unsubscribe(name, untyped);
}

/** Is notified of executions. */
export interface ExecutionListener {
  /** An instance begins to run a batch. */
  start?(batch: BatchMessage): void;
  /** The instance has run the batch. Its requests are not answered yet. `failed` is called before if it threw. */
  end?(batch: BatchMessage): void;
  /** The executor threw an error, with which all requests of the batch fail. */
  failed?(batch: BatchMessage, error: unknown): void;
}

/**
 * Subscribes to the executions of batches: to the events `start`, `asyncEnd` and `error` of the tracing channel
 * `tritonjs:execute`. The object of a batch is the same in all its events.
 *
 * @returns function that ends the subscription
 * @example
 * ```ts
 * const startedAt = new WeakMap<object, number>();
 * const end = onExecution({
 *   start: (batch) => startedAt.set(batch, performance.now()),
 *   end: (batch) => console.log(batch.instance, performance.now() - startedAt.get(batch)!),
 * });
 * ```
 */
export function onExecution(listener: ExecutionListener): () => void {
  const channel = tracingChannel<unknown, BatchMessage & { readonly error?: unknown }>("tritonjs:execute");
  const start = (batch: unknown) => listener.start?.(batch as BatchMessage);
  const end = (batch: unknown) => listener.end?.(batch as BatchMessage);
  const failed = (batch: unknown) =>
    listener.failed?.(batch as BatchMessage, (batch as { readonly error?: unknown }).error);
  channel.start.subscribe(start);
  channel.asyncEnd.subscribe(end);
  channel.error.subscribe(failed);
  return () => {
    channel.start.unsubscribe(start);
    channel.asyncEnd.unsubscribe(end);
    channel.error.unsubscribe(failed);
  };
}
