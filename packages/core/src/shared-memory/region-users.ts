/** Word of a region whose object is closed. */
const CLOSED = -1;
/** Set while a region is to be closed after its last user. The bits below it count the users. */
const AWAITS_END = 1 << 30;

/**
 * Counts the requests that use a region, in one word of memory that all threads of the process share. The thread that
 * owns the region closes it. So no thread reads a descriptor that is closed or belongs to another file by now.
 */
export class RegionUsers {
  readonly #words: Int32Array;
  readonly #index: number;

  constructor(words: Int32Array, index: number) {
    this.#words = words;
    this.#index = index;
  }

  /** Starts over for another region. */
  reset(): void {
    Atomics.store(this.#words, this.#index, 0);
  }

  /** True for a region that is to be closed and has no users. */
  get awaitsEnd(): boolean {
    return Atomics.load(this.#words, this.#index) === AWAITS_END;
  }

  /** Adds a user. Returns false if the region is closed. */
  add(): boolean {
    for (;;) {
      const word = Atomics.load(this.#words, this.#index);
      if (word === CLOSED) return false;
      if (Atomics.compareExchange(this.#words, this.#index, word, word + 1) === word) return true;
    }
  }

  /** Removes a user. Returns true if it was the last one of a region that is to be closed. */
  remove(): boolean {
    return Atomics.sub(this.#words, this.#index, 1) - 1 === AWAITS_END;
  }

  /** Ends the region. Returns false while it has users; the last `remove` then returns true. */
  close(): boolean {
    Atomics.or(this.#words, this.#index, AWAITS_END);
    return Atomics.compareExchange(this.#words, this.#index, AWAITS_END, CLOSED) === AWAITS_END;
  }
}
