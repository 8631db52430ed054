import { type Channel, channel, tracingChannel } from "node:diagnostics_channel";
import type { BatchMessage, DiagnosticMessages } from "./messages.js";

/** A channel whose messages have a type. */
export interface TypedChannel<Message> {
  /** True if anybody listens. Messages are made only then. */
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

function typed<Name extends keyof DiagnosticMessages>(name: Name): TypedChannel<DiagnosticMessages[Name]> {
  return channel(name) as Channel;
}

export const requestStart = typed("tritonjs:request:start");
export const requestQueued = typed("tritonjs:request:queued");
export const requestRefused = typed("tritonjs:request:refused");
export const requestResponse = typed("tritonjs:request:response");
export const requestSettled = typed("tritonjs:request:settled");
export const batchFormed = typed("tritonjs:batch:formed");
export const modelState = typed("tritonjs:model:state");
export const instanceRestart = typed("tritonjs:instance:restart");

const execution = tracingChannel<unknown, BatchMessage>("tritonjs:execute");

/** True if anybody listens to the start or the end of executions. `TracingChannel.hasSubscribers` needs Node 20.13. */
export function executionsAreTraced(): boolean {
  return (
    execution.start.hasSubscribers ||
    execution.end.hasSubscribers ||
    execution.asyncStart.hasSubscribers ||
    execution.asyncEnd.hasSubscribers ||
    execution.error.hasSubscribers
  );
}

/** Runs the execution of a batch between the events of `tracing:tritonjs:execute`. */
export function traceExecution(execute: () => Promise<unknown>, batch: BatchMessage): Promise<unknown> {
  return execution.tracePromise(execute, batch);
}
