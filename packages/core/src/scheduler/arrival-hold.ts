/**
 * Holds a scheduler back until a number of requests have arrived, once: a hold for tests. As in Triton, a request that is
 * given up or expires meanwhile has arrived all the same.
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
