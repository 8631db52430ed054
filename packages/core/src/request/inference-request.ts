import { AsyncResource } from "node:async_hooks";
import type { Deadline } from "../clock/deadline-queue.js";
import type { BatchKey } from "../config/variable-length-options.js";
import { errorWithoutStack } from "../errors/error-without-stack.js";
import type { TritonError } from "../errors/triton-error.js";
import type { CutReason } from "../observe/cut-log.js";
import type { ComputeTimes } from "../observe/statistics.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";
import type { Tensor } from "../tensor/tensor.js";
import type { InferenceRequestInit, ResponseHandler } from "./inference-request-init.js";
import type { InferenceResponse } from "./inference-response.js";
import { NO_PARAMETERS, type Parameters } from "./parameters.js";
import { Pause } from "./pause.js";
import type { AnswerCounter, RequestHolder, ResponseGate } from "./request-observers.js";
import type { SequenceInfo } from "./sequence-info.js";

export type { AnswerCounter, RequestHolder, ResponseGate } from "./request-observers.js";

/** Nobody is told when a request is collected. */
const MANUAL_DESTROY = { requireManualDestroy: true };

const NO_INPUTS: ReadonlyMap<string, Tensor> = new Map();
const NO_OUTPUTS: readonly string[] = Object.freeze([]);
const NO_CALLERS: readonly string[] = Object.freeze([]);

/**
 * One request on its way through the library. It settles exactly once: whichever of answer, error,
 * cancellation and deadline comes first is delivered, the others find it settled and do nothing.
 */
export class InferenceRequest {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly id: string;
  readonly requestedOutputs: readonly string[];
  readonly parameters: Parameters;
  readonly priority: number;
  readonly queueTimeoutMicroseconds: number;
  readonly deadline: number | undefined;
  readonly ready: boolean;
  /** These three are set by the scheduler for a request that becomes an iterative sequence. */
  correlationId: bigint | string | undefined;
  sequenceStart: boolean;
  sequenceEnd: boolean;
  /** Set by the scheduler of sequences when the request leaves for an instance. */
  sequence: SequenceInfo | undefined;
  readonly callers: readonly string[];
  /**
   * The asynchronous context of whoever made the request; null requests have none. An `AsyncResource`, because one costs
   * 20 ns (50 ns while an `AsyncLocalStorage` is in use), and `AsyncLocalStorage.snapshot()` 15 µs on Node 20.
   */
  readonly asyncContext: AsyncResource | undefined;

  /** Set for a request that is traced. */
  readonly trace: RequestTrace | undefined;

  /** Tensors by name, in the order of the request. Emptied when the request leaves a queue unexecuted. */
  inputs: ReadonlyMap<string, Tensor>;
  /** Rows along the batch axis; 0 for a model without one. Set by validation. */
  batchSize = 0;
  /** When the request reached the scheduler, on the model's clock in milliseconds. */
  queueStart = 0;
  /** When its batcher got the request, where that is later than the scheduler: in a sequence it waits for others. */
  batcherStart: number | undefined;
  /** What the batcher groups requests by, where a model says so: only equal keys share a batch. */
  batchKey: BatchKey | undefined;
  /** What the request adds to the cost of its batch, where batches are bounded by cost. */
  batchCost = 0;
  /** Why the batch that the request runs in was cut. Set when an instance takes it; undefined without a batcher. */
  batchCut: CutReason | undefined;
  /** Who keeps the request while it waits. */
  holder: RequestHolder | undefined;
  /** Set by whoever answers and wants to count. */
  counter: AnswerCounter | undefined;
  /** Set by a scheduler that answers in order. */
  gate: ResponseGate | undefined;
  /** Called once when the request is over, before the answer is delivered. */
  onSettled: ((outcome: TritonError | undefined, request: InferenceRequest) => void) | undefined;
  /** Set by an executor that must be told at once when a running request is given up. */
  onCancel: (() => void) | undefined;
  /** Set by an executor whose model can be told that no more answers are wanted, and may answer all the same. */
  onAskedToStop: (() => void) | undefined;
  /**
   * Called when an instance is done with the request, or when it was given up on its way there. `again` says that
   * the model wants to see it once more. Set by a scheduler that waits for it.
   */
  onReleased: ((again: boolean) => void) | undefined;
  /** Takes the outputs for later requests, whatever has become of this one. Set by the response cache. */
  keepOutputs: ((outputs: ReadonlyMap<string, Tensor>) => void) | undefined;
  /** Takes the state outputs for the next request of the sequence, whatever has become of this one. */
  keepStates: ((outputs: ReadonlyMap<string, Tensor>) => void) | undefined;
  /** Told how long computing the answer took, when it succeeded. Set by an ensemble for the requests of its steps. */
  onComputed: ((times: ComputeTimes) => void) | undefined;
  /** Ends the request when its deadline passes. */
  deadlineTimer: Deadline | undefined;
  /** Acts when the request has waited as long as its queue's policy allows. */
  queueDeadline: Deadline | undefined;
  /** Gives outputs the shapes that the client expects, for a model that returns them in others. */
  reshapeOutputs: ((outputs: InferenceResponse["outputs"]) => InferenceResponse["outputs"]) | undefined;
  /** Neighbours in a request queue. */
  next: InferenceRequest | undefined;
  previous: InferenceRequest | undefined;
  /** Neighbours among the requests that the model has accepted and not answered. */
  nextInflight: InferenceRequest | undefined;
  previousInflight: InferenceRequest | undefined;

  #settled = false;
  #answered = false;
  #pause: Pause | undefined;
  #executing = false;
  #controller: AbortController | undefined;
  #cancelReason: TritonError | undefined;
  readonly #onResponse: ResponseHandler;

  constructor(init: InferenceRequestInit) {
    this.modelName = init.modelName;
    this.modelVersion = init.modelVersion ?? "";
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
    this.#settled = !this.ready;
    this.callers = init.callers ?? NO_CALLERS;
    this.asyncContext =
      init.asyncContext ?? (this.ready ? new AsyncResource("TritonRequest", MANUAL_DESTROY) : undefined);
    this.trace = init.trace;
    this.#onResponse = init.onResponse;
  }

  /** Rows that count towards a batch: a request without a batch axis counts as one. */
  get rows(): number {
    return this.batchSize > 0 ? this.batchSize : 1;
  }

  /** `[request id: x] `, the opening of error texts about this request. */
  get logPrefix(): string {
    return `[request id: ${this.id === "" ? "<id_unknown>" : this.id}] `;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /**
   * True once nothing more can be answered: the request is over, or its last answer is there and only held back
   * until those of earlier requests are out. One that is held back can still be given up.
   */
  get answered(): boolean {
    return this.#answered || this.#settled;
  }

  /** True from the moment an instance takes the request. */
  get executing(): boolean {
    return this.#executing;
  }

  /** Aborted when the request is given up. Made when first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelReason !== undefined) this.#controller.abort(this.#cancelReason);
    }
    return this.#controller.signal;
  }

  /** Why the request was given up; undefined while it was not. */
  get cancelReason(): TritonError | undefined {
    return this.#cancelReason;
  }

  /** Calls `fn` in the asynchronous context of whoever made the request. */
  runInContext<T>(fn: () => T): T {
    return this.asyncContext === undefined ? fn() : this.asyncContext.runInAsyncScope(fn);
  }

  /** Undefined while the consumer keeps up with the responses, else a promise of when it does. */
  get writable(): Promise<void> | undefined {
    return this.#pause?.over;
  }

  /** The consumer cannot take more responses for now: a decoupled model waits before it makes the next. */
  pause(): void {
    if (!this.answered) this.#pause ??= new Pause();
  }

  /** The consumer can take responses again. */
  resume(): void {
    this.#pause?.end();
    this.#pause = undefined;
  }

  /** An instance has taken the request: it no longer waits. */
  startExecution(): void {
    this.#executing = true;
    this.holder = undefined;
  }

  /** An instance is done with the request; `again` when the model wants to see it once more. */
  release(again: boolean): void {
    if (again) this.#executing = false;
    const { onReleased } = this;
    this.onReleased = undefined;
    onReleased?.(again);
  }

  /** Delivers a response. Returns false when the request was already over. */
  respond(response: InferenceResponse, final = true): boolean {
    if (this.trace !== undefined && !this.answered) this.trace.outputs(response.outputs);
    if (this.reshapeOutputs === undefined) return this.#deliver(response, undefined, final);
    const outputs = this.reshapeOutputs(response.outputs);
    return this.#deliver({ ...response, outputs }, undefined, final);
  }

  /** Delivers an error; the request goes on unless it is final. Returns false when it was already over. */
  respondError(error: TritonError, final = true): boolean {
    return this.#deliver(error, error, final);
  }

  /** Ends a request of a decoupled model without another response. */
  finish(): boolean {
    return this.#deliver(undefined, undefined, true);
  }

  /**
   * Gives the request up: it leaves its queue at once and lets go of its tensors, a running callback sees its
   * `signal` abort, and the answer is the reason. Returns false when the request was already over.
   */
  cancel(given?: TritonError): boolean {
    if (this.#settled) return false;
    const reason = given ?? errorWithoutStack("CANCELLED", "the request was cancelled");
    this.#cancelReason = reason;
    this.#settled = true;
    this.holder?.remove(this);
    this.holder = undefined;
    if (!this.#executing) this.inputs = NO_INPUTS;
    this.onSettled?.(reason, this);
    this.gate?.leave();
    this.#controller?.abort(reason);
    this.onCancel?.();
    this.resume();
    this.#handOver(reason, true);
    if (!this.#executing) this.release(false);
    return true;
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

  /** It is the answer's turn, unless the request was given up while the answer was held back. */
  #pass(
    outcome: InferenceResponse | TritonError | undefined,
    error: TritonError | undefined,
    final: boolean,
  ): void {
    if (this.#settled) return;
    if (final) {
      this.counter?.answered(this, error);
      this.#settled = true;
      this.onSettled?.(error, this);
    }
    this.#handOver(outcome, final);
  }

  /** A handler that throws is a fault of its own: the other requests of the batch must not suffer from it. */
  #handOver(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    try {
      this.#onResponse(outcome, final);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}
