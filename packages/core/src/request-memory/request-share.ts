import type { MemoryBudget } from "./memory-budget.js";

/**
 * The bytes that one request takes from the budget. They are taken as they come, and all given back by `release` when
 * the request is answered or given up. After that, the share counts nothing.
 */
export class RequestShare {
  readonly #budget: MemoryBudget;
  #bytes = 0;
  #released = false;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  /** Bytes that the request has. */
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
   * Checks that announced bytes would fit. They are not taken before they come: announcing costs a client nothing.
   *
   * @throws TritonError UNAVAILABLE when they would not.
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

  /** Gives back all bytes. Calling it twice is harmless. */
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
