import type { Tensor, TritonError } from "@tritonjs/protocol";

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
