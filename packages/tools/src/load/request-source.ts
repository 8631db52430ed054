import type { LoadRequest } from "../target/load-request.js";

/** Chooses what the next request carries. */
export interface RequestSource {
  /**
   * Fills in the payload and the sequence of the next request.
   *
   * @param index of the request among those of all threads
   * @param left requests that may still be sent, with this one
   * @returns false if none can be sent before another one has ended
   */
  next(request: LoadRequest, index: number, left: number): boolean;
  /** A request has ended. */
  ended(request: LoadRequest): void;
  /** Fills in the last request of an open sequence that has none in flight. False if there is none. */
  last(request: LoadRequest): boolean;
  /** Sets the number of live sequences, and whether each may have only one request in flight. */
  setSequences(live: number, isSerial: boolean): void;
}

/** Carries the payloads of a data set in their order. */
export class PlainSource implements RequestSource {
  readonly #payloads: number;

  constructor(payloads: number) {
    this.#payloads = payloads;
  }

  next(request: LoadRequest, index: number): boolean {
    request.payload = index % this.#payloads;
    return true;
  }

  ended(): void {}

  last(): boolean {
    return false;
  }

  setSequences(): void {}
}
