import type { AsyncResource } from "node:async_hooks";
import {
  definedMembers,
  errorWithoutStack,
  NO_PARAMETERS,
  type Parameters,
  type Tensor,
  type TritonError,
  type TypedArray,
} from "@tritonjs/protocol";
import { AsyncResource as HostContext, process } from "#host";
import type { BatchKey } from "../config/model-options.js";
import type { RequestTrace } from "../observe/request-trace.js";
import {
  copyScalars,
  type ExecutableRequest,
  type RequestScalars,
  type SequenceInfo,
} from "../request-info.js";
import type { Deadline } from "../system/clock.js";
import type { InferenceResponse } from "./inference-response.js";

type Tensors = ReadonlyMap<string, Tensor>;

/** Content of a request as plain values, for programs that make requests. */
export type InferInit = { readonly inputs: Tensors } & Partial<
  Readonly<
    Pick<
      InferenceRequest,
      | keyof RequestScalars
      | "id"
      | "requestedOutputs"
      | "innerOutputs"
      | "parameters"
      | "deadline"
      | "clientLimitMs"
      | "caller"
      | "routingKey"
      | "ready"
      | "callers"
      | "asyncContext"
      | "trace"
      | "onInputsUsed"
    >
  >
>;

/** The sender's control over a request. */
export interface RequestHandle {
  /** Id that the client set, or an empty string. */
  readonly id: string;
  /** True once the request is over. */
  readonly settled: boolean;
  /**
   * True if the model has refused the request after it was sent, as it may in another thread. The refusal is the
   * only outcome. Undefined otherwise.
   */
  readonly refused?: boolean;
  /**
   * Cancels the request. Returns false if it was already over.
   *
   * @param reason error that the request is answered with; CANCELLED by default
   */
  cancel(reason?: TritonError): boolean;
  /** Tells the model that no more answers are wanted. Returns false if the model cannot be told. */
  askToStop(): boolean;
  /** Applies back-pressure: a decoupled model waits before it makes the next response. */
  pause(): void;
  /** Ends the back-pressure: the consumer can take responses again. */
  resume(): void;
}

/**
 * What the scheduler that holds a request keeps with it. A scheduler extends it by what it needs, and makes the object when
 * the request reaches it.
 */
export interface SchedulerExtra {
  /** Group of the request: only requests with equal keys share a batch. */
  readonly key?: BatchKey | undefined;
  /** Share of the request in the cost of its batch, as the function `cost` of the model says. @default 0 */
  readonly cost?: number;
  /**
   * Time at which its batcher got it, if later than the scheduler, on the model's clock in milliseconds: requests of a
   * sequence wait for each other.
   */
  readonly start?: number;
}

/*
 * Roles around a request. It has one sender, one holder while it waits, and one runner from then on. From its acceptance
 * on it may have any number of observers.
 */

/** Has sent a request, and gets its outcomes. An object, because a function for each request costs more. */
export interface RequestSender {
  /**
   * Receives a response or an error. `final` is true once, with the last outcome. A decoupled model may end without a
   * further response; `outcome` is undefined then. The first outcome may come before the call that sends the request
   * returns.
   */
  receive(outcome: InferenceResponse | TritonError | undefined, final: boolean, request: RequestHandle): void;
}

/** Keeps a request while it waits. */
export interface RequestHolder {
  /** Removes a request that leaves: its turn has come, or it was cancelled. */
  remove(request: InferenceRequest): unknown;
  /** True while it waits for its turn, so that a change of the model may take it to another queue. @default false */
  readonly isQueue?: boolean;
}

/** Answers a request once it has left its holder. */
export interface RequestRunner {
  /** The last answer is sent now. An answer that is held back until its turn may be cancelled before. */
  answered?(request: InferenceRequest, error: TritonError | undefined): void;
  givenUp(request: InferenceRequest): void;
  /** Asks the model to stop, because no more answers are wanted. Returns false if the model cannot be told. */
  askedToStop?(request: InferenceRequest): boolean;
}

/**
 * Is notified of a request's events. An event goes to the observers of that moment, in the order in which they were
 * added: the model that accepted the request, then its cache, then its sequence.
 *
 * ```
 * outputs -> answered (runner) -> computed -> settled -> receive (sender) -> released
 * given up:  remove (holder) -> settled -> givenUp (runner) -> receive (sender) -> released, unless it runs
 * ```
 *
 * A decoupled model may release a request before it makes outputs for it.
 */
export interface RequestObserver {
  /** The model has produced outputs for the request: all of them, even if the request is already over. */
  outputs?(request: InferenceRequest, outputs: Tensors): void;
  /** The model has computed an answer: milliseconds for the inputs, for the model itself, and for the outputs. */
  computed?(request: InferenceRequest, inputMs: number, inferMs: number, outputMs: number): void;
  settled?(request: InferenceRequest, error: TritonError | undefined): void;
  /** The request is about to be cancelled. Only the model that accepted it is told. */
  cancelling?(request: InferenceRequest): void;
  /** The cancellation is over, and its sender knows. Only the model that accepted it is told. */
  cancelled?(request: InferenceRequest): void;
  /** The model has refused the request. Nothing else is reported then. */
  refused?(request: InferenceRequest, error: unknown): void;
  /**
   * An instance has finished with the request, or the request was cancelled on its way there. `again` is true when the
   * model wants to run the request again.
   */
  released?(request: InferenceRequest, again: boolean): void;
}

/** Gate between a request and its sender, which holds answers back until it is their turn. */
export interface ResponseGate {
  pass(deliver: () => void, final: boolean): void;
  leave(): void;
}

const NO_INPUTS: Tensors = new Map();
const NO_OUTPUTS: readonly string[] = Object.freeze([]);
const NO_CALLERS: readonly string[] = Object.freeze([]);
const NO_SENDER: RequestSender = { receive() {} };

/**
 * A request: its content as the sender made it, and the state of its processing. Decoders make it and write what the
 * client sent. It settles exactly once: the first of answer, error, cancellation and deadline is delivered, and the
 * others have no effect.
 *
 * The state is fields, and lists are linked through the requests themselves. So a request joins a list without an
 * allocation, and leaves it in O(1) from any position.
 *
 * It stays inside the library. The sender has a `RequestHandle`, backends have an `ExecutableRequest`, and callbacks get
 * copies of its `RequestInfo`.
 */
export class InferenceRequest implements ExecutableRequest, RequestHandle, RequestScalars {
  // Content.
  readonly modelName: string;
  id = "";
  /**
   * Tensors by name, in the order of the request. Validation reshapes them as the model expects them. Emptied when the
   * request is cancelled before it runs.
   */
  inputs = NO_INPUTS;
  /** Names of the outputs to return; empty for all. */
  requestedOutputs = NO_OUTPUTS;
  /** Outputs that only other models read, so that they may stay on a GPU: tensors with a `source`. */
  declare innerOutputs: ReadonlySet<string> | undefined;
  parameters: Parameters = NO_PARAMETERS;
  /** 0 for the model's default level; 1 is the highest. */
  priority = 0;
  /** Longest wait in the queue, for queues whose policy lets requests set one; 0 for none. */
  queueTimeoutMicroseconds = 0;
  /** Time on the model's clock, in milliseconds, at which the caller stops waiting for the answer. */
  deadline: number | undefined = undefined;
  /**
   * Milliseconds that the client waits for the answer from the arrival of the request on, as its transport says; 0 if it
   * does not say. Only models with deadlines look at it: the transport itself ends calls that take longer.
   */
  declare clientLimitMs: number;
  /** Name of the caller in the header of a client, for models that callers share; empty if it is unknown. */
  caller = "";
  /** Key by which a model with several versions in use chooses one, from the header of a client; empty for none. */
  declare routingKey: string;
  /** False for a null request, which fills an empty slot of a sequence batch and has no caller. */
  ready = true;
  /** Models that this request is part of the work of, outermost first: ensembles, and models that call others. */
  callers = NO_CALLERS;
  /** Set for a request that is traced. */
  trace: RequestTrace | undefined = undefined;
  /**
   * The asynchronous context of the caller: that in which the request is sent, unless it was set before. Null requests
   * have none. It is an `AsyncResource`, which costs 20 ns, or 50 ns while an `AsyncLocalStorage` is in use.
   * `AsyncLocalStorage.snapshot()` costs 15 µs on Node 20.
   */
  asyncContext: AsyncResource | undefined = undefined;
  /**
   * Called at most once, before the response, when nothing reads the inputs any more, so that their memory may be freed.
   * If an output lies in it, the function gets that output, and has to keep the memory until it is sent. Not called where
   * a model or a trace may keep the inputs: callbacks on the main thread, unless they release them, and ensembles.
   */
  onInputsUsed: ((output: Tensor | undefined) => void) | undefined = undefined;
  sender: RequestSender;

  // Position in its sequence: the sender's, unless the scheduler makes an iterative sequence of the request.
  correlationId: bigint | string | undefined = undefined;
  sequenceStart = false;
  sequenceEnd = false;

  // Written by validation.
  /** Rows along the batch axis; 0 for a model without one. */
  batchSize = 0;
  /** Restores the shapes that the client expects, for a model that returns outputs in other shapes. */
  declare reshapeOutputs: ((outputs: Tensors) => Tensors) | undefined;

  // Written by the model that accepted the request.
  /** The model, which is notified of all events before other observers. */
  owner: RequestObserver | undefined = undefined;
  /** When the request reached the scheduler, on the model's clock in milliseconds. */
  queueStart = 0;
  /** Neighbours among the requests that the model has not answered. */
  nextInflight: InferenceRequest | undefined = undefined;
  previousInflight: InferenceRequest | undefined = undefined;
  /** Ends the request when its deadline passes. */
  deadlineTimer: Deadline | undefined = undefined;

  // Written by the holder of the request while it waits.
  holder: RequestHolder | undefined = undefined;
  /** Neighbours in a request queue. */
  next: InferenceRequest | undefined = undefined;
  previous: InferenceRequest | undefined = undefined;
  /** Fires when the request has waited as long as the policy of its queue allows. */
  queueDeadline: Deadline | undefined = undefined;

  // Written by batchers.
  /** What the scheduler that holds it keeps with it; undefined for a scheduler that needs nothing. */
  extra: SchedulerExtra | undefined = undefined;
  /** Holds answers back, for a batcher that keeps their order. */
  declare gate: ResponseGate | undefined;
  /** Its sequence; set by the scheduler of sequences when the request leaves for an instance. */
  declare sequence: SequenceInfo | undefined;

  // State, written here only.
  settled = false;
  /**
   * True once nothing more can be answered. Either the request is over, or its last answer is held back until those of
   * earlier requests are out. An answer that is held back can still be cancelled.
   */
  answered = false;
  /** True from the moment an instance takes the request. */
  executing = false;
  /** Why the request was cancelled; undefined if it was not. */
  cancelReason: TritonError | undefined = undefined;

  /** Undefined while the model is the only observer, as it mostly is. */
  #observers: readonly RequestObserver[] | undefined = undefined;
  #runner: RequestRunner | undefined = undefined;
  #pause: Pause | undefined = undefined;
  #controller: AbortController | undefined = undefined;

  /**
   * Members that are declared above without a value, because few requests set them. The others share these, so that a
   * request which waits is 130 bytes smaller: each collection of young objects copies it.
   */
  static {
    const unset = {
      innerOutputs: undefined,
      clientLimitMs: 0,
      routingKey: "",
      reshapeOutputs: undefined,
      gate: undefined,
      sequence: undefined,
    } satisfies { [Name in keyof InferenceRequest]?: InferenceRequest[Name] };
    Object.assign(InferenceRequest.prototype, unset);
  }

  constructor(modelName: string, content?: InferInit, sender: RequestSender = NO_SENDER) {
    this.modelName = modelName;
    this.sender = sender;
    if (content === undefined) return;
    Object.assign(this, definedMembers(content));
    if (this.ready) return;
    this.settled = true;
    this.answered = true;
  }

  /** Takes the content of another request, all but its inputs and what belongs to one request alone. */
  copyContent(other: InferenceRequest): void {
    this.id = other.id;
    this.requestedOutputs = other.requestedOutputs;
    this.parameters = other.parameters;
    copyScalars(other, this);
  }

  /**
   * Makes a request to another model that is part of the work on this one. It inherits everything but its own content.
   *
   * @param caller name of this request's model among the callers
   * @param now time on the model's clock, in milliseconds
   */
  child(modelName: string, caller: string, now: number): InferenceRequest {
    const request = new InferenceRequest(modelName);
    request.copyContent(this);
    request.requestedOutputs = NO_OUTPUTS;
    request.queueTimeoutMicroseconds = this.#remainingMicroseconds(now);
    request.deadline = this.deadline;
    request.caller = this.caller;
    if (this.clientLimitMs > 0) {
      request.clientLimitMs = Math.max(1e-3, this.clientLimitMs - (now - this.queueStart));
    }
    request.callers = [...this.callers, caller];
    const trace = this.trace?.child(modelName);
    request.trace = trace;
    // A callback sees the span of its own request, in the context of the first sender.
    request.asyncContext =
      trace && this.ready ? this.runInContext(() => contextOf(trace)) : this.asyncContext;
    return request;
  }

  /** Takes the present asynchronous context, unless the request has one. */
  enterContext(): void {
    if (this.ready) this.asyncContext ??= contextOf(this.trace);
  }

  /** Remaining time that the request may wait in queues. At least 1, because 0 means no limit. */
  #remainingMicroseconds(now: number): number {
    const limit = this.queueTimeoutMicroseconds;
    return limit === 0 ? 0 : Math.max(1, Math.round(limit - (now - this.queueStart) * 1000));
  }

  /**
   * Milliseconds from the arrival on that the sender leaves for the answer: by its deadline, its time in queues or the limit
   * of its transport; infinite without a limit.
   */
  get limitMs(): number {
    const { deadline, queueTimeoutMicroseconds: timeout, clientLimitMs, queueStart } = this;
    let limitMs = deadline === undefined ? Number.POSITIVE_INFINITY : deadline - queueStart;
    if (timeout > 0) limitMs = Math.min(limitMs, timeout / 1000);
    return clientLimitMs > 0 ? Math.min(limitMs, clientLimitMs) : limitMs;
  }

  /** `[request id: x] `, the beginning of error texts about this request. */
  get logPrefix(): string {
    return `[request id: ${this.id === "" ? "<id_unknown>" : this.id}] `;
  }

  /** Rows that count towards a batch; 1 for a request without a batch axis. */
  get rows(): number {
    return this.batchSize > 0 ? this.batchSize : 1;
  }

  get traceparent(): string | undefined {
    return this.trace?.traceparent;
  }

  /** Aborted when the request is cancelled. Created on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cancelReason !== undefined) this.#controller.abort(this.cancelReason);
    }
    return this.#controller.signal;
  }

  /** Undefined while the consumer keeps up with the responses, else a promise that resolves when it does again. */
  get writable(): Promise<void> | undefined {
    return this.#pause?.over;
  }

  /** Calls `fn` in the asynchronous context of the caller. */
  runInContext<T>(fn: () => T): T {
    return this.asyncContext === undefined ? fn() : this.asyncContext.runInAsyncScope(fn);
  }

  pause(): void {
    if (!this.answered) this.#pause ??= new Pause();
  }

  resume(): void {
    this.#pause?.end();
    this.#pause = undefined;
  }

  /** Notifies an observer of all events from now on. */
  observe(observer: RequestObserver): void {
    // A new list each time, because a notification in progress iterates over the old one.
    this.#observers = [...(this.#observers ?? []), observer];
  }

  /** Stops notifying an observer. */
  ignore(observer: RequestObserver): void {
    this.#observers = this.#observers?.filter((one) => one !== observer);
  }

  /** Records that an instance has taken the request, which no longer waits. */
  startExecution(runner?: RequestRunner): void {
    this.executing = true;
    this.#runner = runner;
    this.holder = undefined;
  }

  /**
   * Tells the sender that no executor reads the inputs any more. Not if a trace may keep them, or several outputs lie in
   * their memory, or one that others than the sender may see.
   */
  inputsUsed(outputs: Tensors): void {
    if (this.onInputsUsed === undefined || this.trace !== undefined) return;
    try {
      const [output, ...more] = outputsIn(this.inputs, outputs);
      if (output === undefined) this.onInputsUsed(undefined);
      else if (more.length === 0 && this.#observers === undefined) this.onInputsUsed(output);
    } catch (error) {
      // It must not affect the other requests of the batch.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /** Reports that the model has refused the request. */
  refuse(error: unknown): void {
    const observers = this.#observers;
    if (observers !== undefined) for (const observer of observers) observer.refused?.(this, error);
  }

  /** Reports the outputs that the model has produced; the request may want only some of them. */
  made(outputs: Tensors): void {
    const observers = this.#observers;
    this.owner?.outputs?.(this, outputs);
    if (observers !== undefined) for (const observer of observers) observer.outputs?.(this, outputs);
  }

  /** Reports that the model has computed an answer. Times are in milliseconds. */
  computed(inputMs: number, inferMs: number, outputMs: number): void {
    const observers = this.#observers;
    this.owner?.computed?.(this, inputMs, inferMs, outputMs);
    if (observers !== undefined)
      for (const observer of observers) observer.computed?.(this, inputMs, inferMs, outputMs);
  }

  /**
   * Reports that an instance has finished with the request. `again` is true when the model wants to run the request
   * again.
   */
  release(again: boolean): void {
    if (again) {
      this.executing = false;
      this.#runner = undefined;
    }
    const observers = this.#observers;
    this.owner?.released?.(this, again);
    if (observers !== undefined) for (const observer of observers) observer.released?.(this, again);
  }

  /** Delivers a response. Returns false if the request was already over. */
  respond(response: InferenceResponse, final = true): boolean {
    if (this.trace !== undefined && !this.answered) this.trace.outputs(response.outputs);
    if (this.reshapeOutputs === undefined) return this.#deliver(response, undefined, final);
    const outputs = this.reshapeOutputs(response.outputs);
    return this.#deliver({ ...response, outputs }, undefined, final);
  }

  /** Delivers an error; the request continues unless the error is final. Returns false if it was already over. */
  respondError(error: TritonError, final = true): boolean {
    return this.#deliver(error, error, final);
  }

  /** Ends a request of a decoupled model without another response. */
  finish(): boolean {
    return this.#deliver(undefined, undefined, true);
  }

  /**
   * Cancels the request with a reason, which becomes its answer. The request leaves its queue and releases its tensors
   * at once, and the `signal` of a running callback aborts. Returns false if the request was already over.
   */
  cancel(given?: TritonError): boolean {
    if (this.settled) return false;
    const reason = given ?? errorWithoutStack("CANCELLED", "the request was cancelled");
    this.cancelReason = reason;
    const { owner } = this;
    owner?.cancelling?.(this);
    this.settled = true;
    this.answered = true;
    this.holder?.remove(this);
    this.holder = undefined;
    if (!this.executing) this.inputs = NO_INPUTS;
    this.#reportSettled(reason);
    this.gate?.leave();
    this.#controller?.abort(reason);
    this.#runner?.givenUp(this);
    this.resume();
    this.#handOver(reason, true);
    if (!this.executing) this.release(false);
    owner?.cancelled?.(this);
    return true;
  }

  askToStop(): boolean {
    return this.#runner?.askedToStop?.(this) ?? false;
  }

  #deliver(
    outcome: InferenceResponse | TritonError | undefined,
    error: TritonError | undefined,
    final: boolean,
  ): boolean {
    if (this.answered) return false;
    if (final) {
      this.answered = true;
      this.resume();
    }
    if (this.gate === undefined) this.#pass(outcome, error, final);
    else this.gate.pass(() => this.#pass(outcome, error, final), final);
    return true;
  }

  /** Delivers an answer whose turn has come, unless the request was cancelled while the answer was held back. */
  #pass(
    outcome: InferenceResponse | TritonError | undefined,
    error: TritonError | undefined,
    final: boolean,
  ): void {
    if (this.settled) return;
    if (final) {
      this.#runner?.answered?.(this, error);
      this.settled = true;
      this.#reportSettled(error);
    }
    this.#handOver(outcome, final);
  }

  #reportSettled(error: TritonError | undefined): void {
    const observers = this.#observers;
    this.owner?.settled?.(this, error);
    if (observers !== undefined) for (const observer of observers) observer.settled?.(this, error);
  }

  /** Hands an outcome to the sender. An error that it throws must not affect the other requests of the batch. */
  #handOver(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    try {
      this.sender.receive(outcome, final, this);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

/** Share of a request in the cost of its batch; 0 where the cost of batches is not bounded. */
export function costOf({ extra }: InferenceRequest): number {
  return extra?.cost ?? 0;
}

/** Time from which the request waits for its batch, on the model's clock in milliseconds. */
export function startOf({ extra, queueStart }: InferenceRequest): number {
  return extra?.start ?? queueStart;
}

/** The request that has this content: the one that a decoder has made, or a new one for plain values. */
export function requestOf(content: InferInit, modelName: string): InferenceRequest {
  return content instanceof InferenceRequest ? content : new InferenceRequest(modelName, content);
}

/** Nothing is notified when a request is collected. */
const MANUAL_DESTROY = { requireManualDestroy: true };

function newAsyncContext(): AsyncResource {
  return new HostContext("TritonRequest", MANUAL_DESTROY);
}

/** Memory that tensors lie in. Strings that were read may each have their own. */
function* memoryOf(tensor: Tensor): Generator<ArrayBufferLike> {
  if (tensor.datatype !== "BYTES" || !tensor.hasElements) yield tensor.bytes.buffer;
  if (!tensor.hasElements) return;
  if (tensor.datatype !== "BYTES") yield (tensor.elements as TypedArray).buffer;
  else for (const { buffer } of tensor.elements as readonly Uint8Array[]) yield buffer;
}

/** The outputs that lie in the memory of inputs. */
function outputsIn(inputs: Tensors, outputs: Tensors): readonly Tensor[] {
  const memory = new Set([...inputs.values()].flatMap((input) => [...memoryOf(input)]));
  return [...outputs.values()].filter((output) => {
    for (const buffer of memoryOf(output)) if (memory.has(buffer)) return true;
    return false;
  });
}

/** Keeps the present asynchronous context, in which the span of a traced request is the active one. */
function contextOf(trace: RequestTrace | undefined): AsyncResource {
  return trace === undefined ? newAsyncContext() : trace.within(newAsyncContext);
}

class Pause {
  #end = () => {};
  readonly over = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  end(): void {
    this.#end();
  }
}
