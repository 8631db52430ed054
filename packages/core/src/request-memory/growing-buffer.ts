const EMPTY = Buffer.alloc(0);

/** Collects pieces in one piece of memory, which doubles when it is full. */
export class GrowingBuffer {
  #buffer = EMPTY;
  #length = 0;
  readonly #firstCapacity: number;

  /** @param expected bytes to make room for when the first piece comes */
  constructor(expected: number) {
    this.#firstCapacity = expected;
  }

  get length(): number {
    return this.#length;
  }

  add(piece: Uint8Array): void {
    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(piece, this.#length);
    this.#length = needed;
  }

  /** All pieces. A buffer that is not half full is not kept. */
  bytes(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    if (2 * this.#length >= this.#buffer.length) return bytes;
    const copy = Buffer.allocUnsafeSlow(this.#length);
    copy.set(bytes);
    return copy;
  }

  #grow(needed: number): void {
    const capacity = this.#length === 0 ? this.#firstCapacity : 2 * this.#buffer.length;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, capacity));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}
