/**
 * Holds a scheduler back, once, until a number of requests have arrived: a hold for tests. As in Triton, requests that
 * are cancelled or expire meanwhile count as arrived.
 */
export class ArrivalHold {
  #missing: number;

  /** @param count requests to wait for; 0 for no hold */
  constructor(count: number) {
    this.#missing = count;
  }

  get isOver(): boolean {
    return this.#missing <= 0;
  }

  arrived(): void {
    this.#missing--;
  }

  end(): void {
    this.#missing = 0;
  }
}
