import type { MemoryBudget } from "./memory-budget.js";

/**
 * The bytes that one request takes from the budget. It takes them as they arrive. `release` returns them all when the
 * request is answered or cancelled. After that, the share counts nothing.
 */
export class RequestShare {
  readonly #budget: MemoryBudget;
  #bytes = 0;
  #released = false;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  /** Bytes that the request holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws TritonError UNAVAILABLE when the bytes do not fit into the budget. */
  take(bytes: number): void {
    if (this.#released) return;
    this.#budget.check(bytes, this.#bytes);
    this.#add(bytes);
  }

  /**
   * Checks that announced bytes would fit. They are taken when they arrive, because announcing them costs a client
   * nothing.
   *
   * @throws TritonError UNAVAILABLE when they would not fit.
   */
  expect(bytes: number): void {
    this.#budget.check(bytes, this.#bytes);
  }

  give(bytes: number): void {
    if (!this.#released) this.#add(-bytes);
  }

  /** Moves bytes to a share of their own. */
  split(bytes: number): RequestShare {
    const part = new RequestShare(this.#budget);
    if (this.#released) part.#released = true;
    else {
      part.#bytes = bytes;
      this.#bytes -= bytes;
    }
    return part;
  }

  /** Returns all bytes to the budget. Calling it twice is harmless. */
  release(): void {
    if (this.#released) return;
    this.#add(-this.#bytes);
    this.#released = true;
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.add(bytes);
  }
}
