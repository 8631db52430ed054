import type { Tensor, TritonError } from "@tritonjs/protocol";

/*
 * Those who have to do with a pending request `R`: it has one holder while it waits, one runner from then on, and any number of
 * observers from when it is accepted.
 */

/** Keeps a request while it waits. */
export interface RequestHolder<R> {
  /** The request leaves: its turn has come, or it was given up. */
  remove(request: R): void;
}

/** Answers a request, from when it has left its holder. */
export interface RequestRunner<R> {
  /** The last answer goes out now. An answer that is held back until its turn may be given up before. */
  answered?(request: R, error: TritonError | undefined): void;
  /** The request was given up. */
  givenUp(request: R): void;
  /** Nobody wants more answers. Returns false when the model cannot be told. */
  askedToStop?(request: R): boolean;
}

/**
 * Hears what becomes of a request. An event goes to those who observe the request when it happens, in the order in which they
 * began: the model that accepted it, then its cache, then its sequence.
 *
 * ```
 * outputs -> answered (runner) -> computed -> settled -> the request's handler -> released
 * given up:  remove (holder) -> settled -> givenUp (runner) -> the request's handler -> released, unless it runs
 * ```
 *
 * A decoupled model may release a request before it makes outputs for it.
 */
export interface RequestObserver<R> {
  /** The model has made outputs for the request: all of them, also when the request is over. */
  outputs?(request: R, outputs: ReadonlyMap<string, Tensor>): void;
  /** The model has computed an answer: milliseconds for the inputs, for the model itself, and for the outputs. */
  computed?(request: R, inputMs: number, inferMs: number, outputMs: number): void;
  /** The request is over; `error` unless it succeeded. */
  settled?(request: R, error: TritonError | undefined): void;
  /**
   * An instance is done with the request, or the request was given up on its way there. `again` says that the model wants to
   * see the request once more.
   */
  released?(request: R, again: boolean): void;
}

/** Stands between a request and its handler, to hold answers back until it is their turn. */
export interface ResponseGate {
  pass(deliver: () => void, final: boolean): void;
  /** The request was given up: nobody need wait for it. */
  leave(): void;
}
