import { errorWithoutStack, type Tensor, type TritonError } from "@tritonjs/protocol";

import { InferenceRequest } from "./inference-request.js";
import type { InferInit, ResponseHandler } from "./inference-request-init.js";
import type { InferenceResponse } from "./inference-response.js";
import type { RequestHandle } from "./request-handle.js";
import type { RequestObserver, RequestRunner } from "./request-observer.js";
import { ScheduledRequest } from "./scheduled-request.js";

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
