import type { Deadline } from "../clock/deadline-queue.js";
import { TritonError } from "../errors/triton-error.js";
import type { ComputeTimes } from "../observe/statistics.js";
import type { Tensor } from "../tensor/tensor.js";
import type { InferenceRequestInit, ResponseHandler } from "./inference-request-init.js";
import type { InferenceResponse } from "./inference-response.js";
import { NO_PARAMETERS, type Parameters } from "./parameters.js";
import type { SequenceInfo } from "./sequence-info.js";

/** Whoever keeps a waiting request: told when the request is over before its turn. */
export interface RequestHolder {
  remove(request: InferenceRequest): void;
}

/** Stands between a request and its handler, to hold answers back until it is their turn. */
export interface ResponseGate {
  pass(deliver: () => void, final: boolean): void;
  /** The request was given up: nobody need wait for it. */
  leave(): void;
}

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
  readonly timeoutMicroseconds: number;
  readonly deadline: number | undefined;
  readonly ready: boolean;
  /** These three are set by the scheduler for a request that becomes an iterative sequence. */
  correlationId: bigint | string | undefined;
  sequenceStart: boolean;
  sequenceEnd: boolean;
  /** Set by the scheduler of sequences when the request leaves for an instance. */
  sequence: SequenceInfo | undefined;
  readonly callers: readonly string[];

  /** Tensors by name, in the order of the request. Emptied when the request leaves a queue unexecuted. */
  inputs: ReadonlyMap<string, Tensor>;
  /** Rows along the batch axis; 0 for a model without one. Set by validation. */
  batchSize = 0;
  /** When the request reached the scheduler, on the model's clock in milliseconds. */
  queueStart = 0;
  /** When its batcher got the request, where that is later than the scheduler: in a sequence it waits for others. */
  batcherStart: number | undefined;
  /** Who keeps the request while it waits. */
  holder: RequestHolder | undefined;
  /** Set by a scheduler that answers in order. */
  gate: ResponseGate | undefined;
  /** Called once when the request is over, before the answer is delivered. */
  onSettled: ((outcome: TritonError | undefined) => void) | undefined;
  /** Set by an executor that must be told at once when a running request is given up. */
  onCancel: (() => void) | undefined;
  /**
   * Called when an instance is done with the request, or when it was given up on its way there. `again` says that
   * the model wants to see it once more. Set by a scheduler that waits for it.
   */
  onReleased: ((again: boolean) => void) | undefined;
  /** Takes the outputs for later requests, whatever has become of this one. Set by the response cache. */
  keepOutputs: ((outputs: ReadonlyMap<string, Tensor>) => void) | undefined;
  /** Told how long computing the answer took, when it succeeded. Set by an ensemble for the requests of its steps. */
  onComputed: ((times: ComputeTimes) => void) | undefined;
  /** Ends the request when its deadline passes. */
  deadlineTimer: Deadline | undefined;
  /** Acts when the request has waited as long as its queue's policy allows. */
  queueDeadline: Deadline | undefined;
  /** Neighbours in a request queue. */
  next: InferenceRequest | undefined;
  previous: InferenceRequest | undefined;

  #settled = false;
  #paused: { readonly promise: Promise<void>; resolve(): void } | undefined;
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
    this.timeoutMicroseconds = init.timeoutMicroseconds ?? 0;
    this.deadline = init.deadline;
    this.correlationId = init.correlationId;
    this.sequenceStart = init.sequenceStart ?? false;
    this.sequenceEnd = init.sequenceEnd ?? false;
    this.ready = init.ready ?? true;
    this.#settled = !this.ready;
    this.callers = init.callers ?? NO_CALLERS;
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

  /** Undefined while the consumer keeps up with the responses, else a promise of when it does. */
  get writable(): Promise<void> | undefined {
    return this.#paused?.promise;
  }

  /** The consumer cannot take more responses for now: a decoupled model waits before it makes the next. */
  pause(): void {
    if (this.#paused !== undefined || this.#settled) return;
    let resolve = () => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    this.#paused = { promise, resolve };
  }

  /** The consumer can take responses again. */
  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
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
    return this.#deliver(response, undefined, final);
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
   * `signal` abort, and the answer is `reason`. Returns false when the request was already over.
   */
  cancel(reason: TritonError = new TritonError("CANCELLED", "the request was cancelled")): boolean {
    if (this.#settled) return false;
    this.#cancelReason = reason;
    this.#settled = true;
    this.holder?.remove(this);
    this.holder = undefined;
    if (!this.#executing) this.inputs = NO_INPUTS;
    this.onSettled?.(reason);
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
    if (this.#settled) return false;
    if (final) {
      this.#settled = true;
      this.onSettled?.(error);
      this.resume();
    }
    if (this.gate === undefined) this.#handOver(outcome, final);
    else this.gate.pass(() => this.#handOver(outcome, final), final);
    return true;
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
