import { AsyncResource } from "node:async_hooks";
import {
  errorWithoutStack,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  NO_PARAMETERS,
  type Parameters,
  type Tensor,
  type TritonError,
} from "@tritonjs/protocol";
import type { BatchKey } from "../config/model-options.js";
import type { RequestTrace } from "../observe/request-trace.js";
import type { Deadline } from "../system/clock.js";
import { reshapeRule } from "../tensor-rows.js";
import type { InferenceResponse } from "./inference-response.js";
import type { RequestInfo, SequenceInfo, SequencePlace } from "./request-info.js";

/**
 * Receives the outcomes of a request: responses and errors. `final` is true once, with the last outcome. A decoupled
 * model may end without a further response; `outcome` is undefined then. The first outcome may come before the call
 * that sends the request returns.
 */
export type ResponseHandler = (
  outcome: InferenceResponse | TritonError | undefined,
  final: boolean,
  request: RequestHandle,
) => void;

/**
 * Content of an infer request as decoders produce it. Decoders fill in the fields while they read, and the request is
 * constructed from them directly.
 */
export interface InferInit {
  readonly id?: string;
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Names of the outputs to return; empty for all. */
  readonly requestedOutputs?: readonly string[];
  readonly parameters?: Parameters;
  /** 0 for the model's default level; 1 is the highest. */
  readonly priority?: number;
  /** Longest wait in the queue, for queues whose policy lets requests set one; 0 for none. */
  readonly queueTimeoutMicroseconds?: number;
  /** Time on the model's clock, in milliseconds, at which the caller stops waiting for the answer. */
  readonly deadline?: number;
  readonly correlationId?: bigint | string;
  readonly sequenceStart?: boolean;
  readonly sequenceEnd?: boolean;
  /** False for a null request, which fills an empty slot of a sequence batch and has no caller. */
  readonly ready?: boolean;
  /** Models that this request is part of the work of, outermost first: ensembles, and models that call others. */
  readonly callers?: readonly string[];
  /**
   * The asynchronous context that the request is made on behalf of.
   * @default the context that constructs the request
   */
  readonly asyncContext?: AsyncResource | undefined;
  /** Set for a request that is traced. */
  readonly trace?: RequestTrace | undefined;
  /**
   * Called at most once, before the response, when nothing reads the inputs any more, so that their memory may be
   * freed. It is not called where a model or a trace may keep them: callbacks on the main thread, and ensembles.
   */
  readonly onInputsUsed?: (() => void) | undefined;
}

/** Nothing is notified when a request is collected. */
const MANUAL_DESTROY = { requireManualDestroy: true };

const NO_INPUTS: ReadonlyMap<string, Tensor> = new Map();
const NO_OUTPUTS: readonly string[] = Object.freeze([]);
const NO_CALLERS: readonly string[] = Object.freeze([]);

/** Keeps the present asynchronous context. */
export function newAsyncContext(): AsyncResource {
  return new AsyncResource("TritonRequest", MANUAL_DESTROY);
}

/** Keeps the present asynchronous context, in which the span of a traced request is the active one. */
function contextOf(trace: RequestTrace | undefined): AsyncResource {
  return trace === undefined ? newAsyncContext() : trace.within(newAsyncContext);
}

/** Content of a request, immutable once constructed. The `PendingRequest` holds the state of its processing. */
class InferenceRequest implements SequencePlace {
  readonly modelName: string;
  readonly id: string;
  /** Tensors by name, in the order of the request. */
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly requestedOutputs: readonly string[];
  readonly parameters: Parameters;
  readonly priority: number;
  readonly queueTimeoutMicroseconds: number;
  readonly deadline: number | undefined;
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  readonly ready: boolean;
  readonly callers: readonly string[];
  /**
   * The asynchronous context of the caller; null requests have none. It is an `AsyncResource`, which costs 20 ns, or 50
   * ns while an `AsyncLocalStorage` is in use. `AsyncLocalStorage.snapshot()` costs 15 µs on Node 20.
   */
  readonly asyncContext: AsyncResource | undefined;
  /** Set for a request that is traced. */
  readonly trace: RequestTrace | undefined;
  /** Tells the sender that nothing reads the inputs any more. */
  readonly onInputsUsed: (() => void) | undefined;

  constructor(init: InferInit, modelName: string) {
    this.modelName = modelName;
    this.id = init.id ?? "";
    this.inputs = init.inputs;
    this.requestedOutputs = init.requestedOutputs ?? NO_OUTPUTS;
    this.parameters = init.parameters ?? NO_PARAMETERS;
    this.priority = init.priority ?? 0;
    this.queueTimeoutMicroseconds = init.queueTimeoutMicroseconds ?? 0;
    this.deadline = init.deadline;
    this.correlationId = init.correlationId;
    this.sequenceStart = init.sequenceStart ?? false;
    this.sequenceEnd = init.sequenceEnd ?? false;
    this.ready = init.ready ?? true;
    this.callers = init.callers ?? NO_CALLERS;
    this.asyncContext = init.asyncContext ?? (this.ready ? contextOf(init.trace) : undefined);
    this.trace = init.trace;
    this.onInputsUsed = init.onInputsUsed;
  }

  /** `[request id: x] `, the beginning of error texts about this request. */
  get logPrefix(): string {
    return `[request id: ${this.id === "" ? "<id_unknown>" : this.id}] `;
  }

  /** The same request without its tensors, which may be large. */
  withoutInputs(): InferenceRequest {
    return new InferenceRequest({ ...this, inputs: NO_INPUTS }, this.modelName);
  }

  /** Calls `fn` in the asynchronous context of the caller. */
  runInContext<T>(fn: () => T): T {
    return this.asyncContext === undefined ? fn() : this.asyncContext.runInAsyncScope(fn);
  }
}

/*
 * Roles around a pending request `R`. It has one holder while it waits, and one runner from then on. From its
 * acceptance on it may have any number of observers.
 */

/** Keeps a request while it waits. */
export interface RequestHolder<R> {
  /** Removes a request that leaves: its turn has come, or it was cancelled. */
  remove(request: R): void;
}

/** Answers a request once it has left its holder. */
export interface RequestRunner<R> {
  /** The last answer is sent now. An answer that is held back until its turn may be cancelled before. */
  answered?(request: R, error: TritonError | undefined): void;
  /** The request was cancelled. */
  givenUp(request: R): void;
  /** Asks the model to stop, because no more answers are wanted. Returns false if the model cannot be told. */
  askedToStop?(request: R): boolean;
}

/**
 * Is notified of a request's events. An event goes to the observers of that moment, in the order in which they were
 * added: the model that accepted the request, then its cache, then its sequence.
 *
 * ```
 * outputs -> answered (runner) -> computed -> settled -> the request's handler -> released
 * given up:  remove (holder) -> settled -> givenUp (runner) -> the request's handler -> released, unless it runs
 * ```
 *
 * A decoupled model may release a request before it makes outputs for it.
 */
export interface RequestObserver<R> {
  /** The model has produced outputs for the request: all of them, even if the request is already over. */
  outputs?(request: R, outputs: ReadonlyMap<string, Tensor>): void;
  /** The model has computed an answer: milliseconds for the inputs, for the model itself, and for the outputs. */
  computed?(request: R, inputMs: number, inferMs: number, outputMs: number): void;
  /** The request is over; `error` is undefined if it succeeded. */
  settled?(request: R, error: TritonError | undefined): void;
  /**
   * An instance has finished with the request, or the request was cancelled on its way there. `again` is true when the
   * model wants to run the request again.
   */
  released?(request: R, again: boolean): void;
}

/** Gate between a request and its handler, which holds answers back until it is their turn. */
export interface ResponseGate {
  pass(deliver: () => void, final: boolean): void;
  /** The request was cancelled, so no other request needs to wait for it. */
  leave(): void;
}

/**
 * A pending request `R` as schedulers see it: its content, and the notes of each stage that it passes. The notes are
 * fields of the request, and lists are linked through the requests themselves. So a request joins a list without an
 * allocation, and leaves it in O(1) from any position.
 */
abstract class ScheduledRequest<R> implements RequestInfo {
  // Written by validation.
  /** Tensors as the model sees them. Emptied when the request is cancelled before it runs. */
  inputs: ReadonlyMap<string, Tensor>;
  /** Rows along the batch axis; 0 for a model without one. */
  batchSize = 0;
  /** Restores the shapes that the client expects, for a model that returns outputs in other shapes. */
  reshapeOutputs: Reshape | undefined = undefined;

  // Written by the model that accepted the request.
  /** When the request reached the scheduler, on the model's clock in milliseconds. */
  queueStart = 0;
  /** Neighbours among the requests that the model has not answered. */
  nextInflight: R | undefined = undefined;
  previousInflight: R | undefined = undefined;
  /** Ends the request when its deadline passes. */
  deadlineTimer: Deadline | undefined = undefined;

  // Written by the holder of the request while it waits.
  holder: RequestHolder<R> | undefined = undefined;
  /** Neighbours in a request queue. */
  next: R | undefined = undefined;
  previous: R | undefined = undefined;
  /** Fires when the request has waited as long as the policy of its queue allows. */
  queueDeadline: Deadline | undefined = undefined;

  // Written by batchers.
  /**
   * Time at which its batcher got the request, if later than the scheduler: requests of a sequence wait for each other.
   */
  batcherStart: number | undefined = undefined;
  /** Group of the request, for models that batch by a key: only requests with equal keys share a batch. */
  batchKey: BatchKey | undefined = undefined;
  /** Share of the request in the cost of its batch, where the cost of batches is bounded. */
  batchCost = 0;
  /** Holds answers back, for a batcher that keeps their order. */
  gate: ResponseGate | undefined = undefined;

  // Written by the scheduler of sequences.
  /** Set when the request leaves for an instance. */
  sequence: SequenceInfo | undefined = undefined;
  #place: SequencePlace | undefined = undefined;

  #given: InferenceRequest;

  constructor(given: InferenceRequest) {
    this.#given = given;
    this.inputs = given.inputs;
  }

  /** The request as its sender made it. It has no tensors once it was cancelled before it ran. */
  get given(): InferenceRequest {
    return this.#given;
  }

  get id(): string {
    return this.#given.id;
  }

  get modelName(): string {
    return this.#given.modelName;
  }

  get requestedOutputs(): readonly string[] {
    return this.#given.requestedOutputs;
  }

  get parameters(): Parameters {
    return this.#given.parameters;
  }

  get priority(): number {
    return this.#given.priority;
  }

  get queueTimeoutMicroseconds(): number {
    return this.#given.queueTimeoutMicroseconds;
  }

  get deadline(): number | undefined {
    return this.#given.deadline;
  }

  get ready(): boolean {
    return this.#given.ready;
  }

  get callers(): readonly string[] {
    return this.#given.callers;
  }

  get trace(): RequestTrace | undefined {
    return this.#given.trace;
  }

  get traceparent(): string | undefined {
    return this.#given.trace?.traceparent;
  }

  get logPrefix(): string {
    return this.#given.logPrefix;
  }

  /**
   * Position of the request in its sequence. It is the sender's, unless a scheduler makes an iterative sequence of the
   * request.
   */
  get place(): SequencePlace {
    return this.#place ?? this.#given;
  }

  set place(place: SequencePlace) {
    this.#place = place;
  }

  get correlationId(): bigint | string | undefined {
    return this.place.correlationId;
  }

  get sequenceStart(): boolean {
    return this.place.sequenceStart;
  }

  get sequenceEnd(): boolean {
    return this.place.sequenceEnd;
  }

  /** Rows that count towards a batch; 1 for a request without a batch axis. */
  get rows(): number {
    return this.batchSize > 0 ? this.batchSize : 1;
  }

  /** Tells the sender that no executor reads the inputs any more. A trace may keep them. */
  inputsUsed(): void {
    if (this.trace !== undefined) return;
    try {
      this.#given.onInputsUsed?.();
    } catch (error) {
      // It must not affect the other requests of the batch.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /** Calls `fn` in the asynchronous context of the caller. */
  runInContext<T>(fn: () => T): T {
    return this.#given.runInContext(fn);
  }

  /** Releases the tensors. */
  protected dropInputs(): void {
    this.inputs = NO_INPUTS;
    this.#given = this.#given.withoutInputs();
  }
}

/** A consumer's pause between responses. */
class Pause {
  #end = () => {};
  /** Resolves when the pause is over. */
  readonly over = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  end(): void {
    this.#end();
  }
}

type Observers = readonly RequestObserver<PendingRequest>[];

const NOBODY: Observers = [];

/**
 * A request and the state of its processing. It settles exactly once: the first of answer, error, cancellation and
 * deadline is delivered, and the others have no effect.
 *
 * It stays inside the library. The sender has a `RequestHandle`, backends see views of its `RequestInfo`, and callbacks
 * get copies.
 */
export class PendingRequest extends ScheduledRequest<PendingRequest> implements RequestHandle {
  /** The first observer, which most requests have alone, and those that were added later. */
  #observer: RequestObserver<PendingRequest> | undefined = undefined;
  #others = NOBODY;
  #runner: RequestRunner<PendingRequest> | undefined = undefined;
  #settled: boolean;
  #answered = false;
  #executing = false;
  #pause: Pause | undefined = undefined;
  #controller: AbortController | undefined = undefined;
  #cancelReason: TritonError | undefined = undefined;
  readonly #onResponse: ResponseHandler;

  constructor(init: InferInit, modelName: string, onResponse: ResponseHandler) {
    super(new InferenceRequest(init, modelName));
    this.#settled = !this.ready;
    this.#onResponse = onResponse;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /**
   * True once nothing more can be answered. Either the request is over, or its last answer is held back until those of
   * earlier requests are out. An answer that is held back can still be cancelled.
   */
  get answered(): boolean {
    return this.#answered || this.#settled;
  }

  /** True from the moment an instance takes the request. */
  get executing(): boolean {
    return this.#executing;
  }

  /** Aborted when the request is cancelled. Created on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelReason !== undefined) this.#controller.abort(this.#cancelReason);
    }
    return this.#controller.signal;
  }

  /** Why the request was cancelled; undefined if it was not. */
  get cancelReason(): TritonError | undefined {
    return this.#cancelReason;
  }

  /** Undefined while the consumer keeps up with the responses, else a promise that resolves when it does again. */
  get writable(): Promise<void> | undefined {
    return this.#pause?.over;
  }

  pause(): void {
    if (!this.answered) this.#pause ??= new Pause();
  }

  resume(): void {
    this.#pause?.end();
    this.#pause = undefined;
  }

  /** Notifies an observer of all events from now on. */
  observe(observer: RequestObserver<PendingRequest>): void {
    if (this.#observer === undefined) this.#observer = observer;
    // A new list each time, because a notification in progress iterates over the old one.
    else this.#others = [...this.#others, observer];
  }

  /** Stops notifying an observer. */
  ignore(observer: RequestObserver<PendingRequest>): void {
    const [first, ...others] = [this.#observer, ...this.#others].filter((one) => one !== observer);
    this.#observer = first;
    this.#others = others as Observers;
  }

  /** Records that an instance has taken the request, which no longer waits. */
  startExecution(runner?: RequestRunner<PendingRequest>): void {
    this.#executing = true;
    this.#runner = runner;
    this.holder = undefined;
  }

  /** Reports the outputs that the model has produced; the request may want only some of them. */
  made(outputs: ReadonlyMap<string, Tensor>): void {
    const others = this.#others;
    this.#observer?.outputs?.(this, outputs);
    for (const observer of others) observer.outputs?.(this, outputs);
  }

  /** Reports that the model has computed an answer. Times are in milliseconds. */
  computed(inputMs: number, inferMs: number, outputMs: number): void {
    const others = this.#others;
    this.#observer?.computed?.(this, inputMs, inferMs, outputMs);
    for (const observer of others) observer.computed?.(this, inputMs, inferMs, outputMs);
  }

  /**
   * Reports that an instance has finished with the request. `again` is true when the model wants to run the request
   * again.
   */
  release(again: boolean): void {
    if (again) {
      this.#executing = false;
      this.#runner = undefined;
    }
    const others = this.#others;
    this.#observer?.released?.(this, again);
    for (const observer of others) observer.released?.(this, again);
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
    if (this.#settled) return false;
    const reason = given ?? errorWithoutStack("CANCELLED", "the request was cancelled");
    this.#cancelReason = reason;
    this.#settled = true;
    this.holder?.remove(this);
    this.holder = undefined;
    if (!this.#executing) this.dropInputs();
    this.#tellSettled(reason);
    this.gate?.leave();
    this.#controller?.abort(reason);
    this.#runner?.givenUp(this);
    this.resume();
    this.#handOver(reason, true);
    if (!this.#executing) this.release(false);
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
      this.#answered = true;
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
    if (this.#settled) return;
    if (final) {
      this.#runner?.answered?.(this, error);
      this.#settled = true;
      this.#tellSettled(error);
    }
    this.#handOver(outcome, final);
  }

  #tellSettled(error: TritonError | undefined): void {
    const others = this.#others;
    this.#observer?.settled?.(this, error);
    for (const observer of others) observer.settled?.(this, error);
  }

  /** Calls the handler. An error that it throws must not affect the other requests of the batch. */
  #handOver(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    try {
      this.#onResponse(outcome, final, this);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

/** The sender's control over a request. */
export interface RequestHandle {
  /** Id that the client set, or an empty string. */
  readonly id: string;
  /** True once the request is over. */
  readonly settled: boolean;
  /**
   * True if the model has refused the request after `infer` returned, as it may in another thread. The refusal is the
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

type Tensors = ReadonlyMap<string, Tensor>;

/** Changes the shapes of tensors. */
type Reshape = (tensors: Tensors) => Tensors;

/** Shape changes for a model with `reshape` in its configuration; undefined where nothing changes. */
export interface Reshapes {
  /** From the shapes that clients send to those that the model expects. */
  readonly inputs: Reshape | undefined;
  /** From the shapes that the model returns to those that clients get. */
  readonly outputs: Reshape | undefined;
}

/** The shape changes that a configuration asks for. */
export function reshapesOf({ input, output, maxBatchSize }: ModelConfig): Reshapes {
  const batched = maxBatchSize > 0;
  return {
    inputs: reshapeAll(input, (dims, shape) => reshapeRule(dims, shape, batched)),
    outputs: reshapeAll(output, (dims, shape) => reshapeRule(shape, dims, batched)),
  };
}

function reshapeAll(
  tensors: readonly (ModelInput | ModelOutput)[],
  ruleOf: (dims: readonly number[], shape: readonly number[]) => (tensor: Tensor) => Tensor,
): Reshape | undefined {
  const rules = new Map<string, (tensor: Tensor) => Tensor>();
  for (const { name, dims, reshape } of tensors) {
    if (reshape !== undefined) rules.set(name, ruleOf(dims, reshape.shape));
  }
  if (rules.size === 0) return undefined;
  return (given) => new Map([...given].map(([name, tensor]) => [name, rules.get(name)?.(tensor) ?? tensor]));
}
