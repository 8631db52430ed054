import type { Channel } from "node:diagnostics_channel";
import type { Tensor, TritonError } from "@tritonjs/protocol";
import { channel, subscribe, tracingChannel, unsubscribe } from "#host";
import type { RequestInfo } from "../request-info.js";
import type { CutReason } from "./statistics.js";

/** A request, in all messages about it: always the same object, so that it can be the key of a `WeakMap`. */
export interface DiagnosedRequest
  extends Pick<RequestInfo, "id" | "priority" | "parameters" | "correlationId"> {
  readonly model: string;
  /** Version of the model that accepted the request. */
  readonly version: string;
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  /** Models that sent the request, as `name/version`, outermost first; empty for a request of a client. */
  readonly callers: readonly string[];
  /** Trace to which the request belongs, 32 hexadecimal digits; undefined if it is not part of one. */
  readonly traceId: string | undefined;
}

/** A model has accepted a request. Its input checks are done. */
export interface RequestStartMessage {
  readonly request: DiagnosedRequest;
}

/** A request waits for a batch or an instance. There is no such message for a request that runs at once. */
export interface RequestQueuedMessage {
  readonly request: DiagnosedRequest;
  /** Requests of the model that wait, including this one. */
  readonly waiting: number;
}

/** A model has refused a request: it was invalid, or the queue was full. No other message follows. */
export interface RequestRefusedMessage {
  readonly model: string;
  readonly version: string;
  readonly id: string;
  /** The error with which the request is answered. */
  readonly error: unknown;
}

/** A model has made a response to a request: one of many if it is decoupled. */
export interface RequestResponseMessage {
  readonly request: DiagnosedRequest;
  /** All outputs of the model by name, also those that the request does not want. They must not be changed. */
  readonly outputs: ReadonlyMap<string, Tensor>;
  /** Time since the acceptance of the request, in milliseconds. */
  readonly durationMs: number;
}

/** A request is over. */
export interface RequestSettledMessage {
  readonly request: DiagnosedRequest;
  /** Undefined if the request succeeded. */
  readonly error: TritonError | undefined;
  /** Time since its acceptance, in milliseconds. */
  readonly durationMs: number;
}

/** A batch that an instance has taken. */
export interface BatchMessage {
  readonly model: string;
  readonly version: string;
  /** Name of the instance. */
  readonly instance: string;
  /** Rows of the batch. */
  readonly batchSize: number;
  /** Why the batch has exactly these requests; undefined for a model without a batcher. */
  readonly cut: CutReason | undefined;
  readonly requests: readonly DiagnosedRequest[];
}

/** The state of a model version has changed. */
export interface ModelStateMessage {
  readonly model: string;
  readonly version: string;
  readonly state: "UNKNOWN" | "LOADING" | "READY" | "UNLOADING" | "UNAVAILABLE";
  /** Why the version is UNAVAILABLE; empty for the other states. */
  readonly reason: string;
}

/** A worker of an instance has died and will be restarted, or has restarted. */
export interface InstanceRestartMessage {
  readonly model: string;
  readonly version: string;
  readonly instance: string;
  /** `restarting` after each death and each failed restart, `restarted` when the instance takes batches again. */
  readonly phase: "restarting" | "restarted";
  /** Why the worker died, or why its restart failed; undefined for `restarted`. */
  readonly error: TritonError | undefined;
  /** Pause before the next attempt, in milliseconds; 0 for `restarted`. */
  readonly pauseMs: number;
}

/** The messages of each channel by its name. */
export interface DiagnosticMessages {
  "tritonjs:request:start": RequestStartMessage;
  "tritonjs:request:queued": RequestQueuedMessage;
  "tritonjs:request:refused": RequestRefusedMessage;
  "tritonjs:request:response": RequestResponseMessage;
  "tritonjs:request:settled": RequestSettledMessage;
  "tritonjs:batch:formed": BatchMessage;
  "tritonjs:model:state": ModelStateMessage;
  "tritonjs:instance:restart": InstanceRestartMessage;
}

interface TypedChannel<Message> {
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

export const executionChannel = tracingChannel<unknown, BatchMessage>("tritonjs:execute");

/** Runs the execution of a batch between the events of `tracing:tritonjs:execute`. */
export function traceExecution(execute: () => Promise<unknown>, batch: BatchMessage): Promise<unknown> {
  return executionChannel.tracePromise(execute, batch);
}

/** The parts of a request in progress that messages show. */
interface RequestSource extends Omit<DiagnosedRequest, "model" | "version" | "traceId"> {
  readonly trace: { readonly traceId: string | undefined } | undefined;
}

/** The object that shows each request. Empty without subscribers. */
const known = new WeakMap<RequestSource, DiagnosedRequest>();

/** The object that stands for a request in all messages. */
export function diagnosedRequest(request: RequestSource, model: string, version: string): DiagnosedRequest {
  let shown = known.get(request);
  if (shown === undefined) {
    const { id, rows, priority, parameters, correlationId, callers, trace } = request;
    const traceId = trace?.traceId;
    shown = { model, version, id, rows, priority, parameters, correlationId, callers, traceId };
    known.set(request, shown);
  }
  return shown;
}

interface BatchSource {
  readonly batchSize: number;
  readonly cut: BatchMessage["cut"];
  /** Its requests; null requests fill empty slots of a sequence batch, and are left out. */
  readonly requests: readonly (RequestSource & { readonly ready: boolean })[];
}

export function batchMessage(
  batch: BatchSource,
  model: string,
  version: string,
  instance: string,
): BatchMessage {
  const { batchSize, cut, requests } = batch;
  const shown = requests.filter(({ ready }) => ready).map((one) => diagnosedRequest(one, model, version));
  return { model, version, instance, batchSize, cut, requests: shown };
}

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
