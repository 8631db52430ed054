const LENGTH_BYTES = 4;
const FIRST_CAPACITY = 64 * 1024;
/** Bytes from which a native copy is faster than a loop. */
const WORTH_NATIVE_COPY = 64;

/**
 * Many strings of a message in the wire form of a BYTES tensor: each behind its length in four bytes. An array of them
 * would take an object of a hundred bytes for each.
 */
export class WireStrings implements Iterable<Uint8Array> {
  #buffer = new Uint8Array(0);
  #bytes = 0;
  #count = 0;

  /** Number of strings. */
  get length(): number {
    return this.#count;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#bytes);
  }

  /** All strings in one piece, for callers that add up lengths. */
  *[Symbol.iterator](): Generator<Uint8Array> {
    yield this.bytes;
  }

  /** Adds the string in `source` from `from` to `end`. */
  add(source: Uint8Array, from: number, end: number): void {
    const length = end - from;
    const needed = this.#bytes + LENGTH_BYTES + length;
    if (needed > this.#buffer.length) this.#grow(needed);
    const buffer = this.#buffer;
    let at = this.#bytes;
    buffer[at++] = length;
    buffer[at++] = length >>> 8;
    buffer[at++] = length >>> 16;
    buffer[at++] = length >>> 24;
    if (length >= WORTH_NATIVE_COPY) buffer.set(source.subarray(from, end), at);
    else for (let place = from; place < end; place++) buffer[at++] = source[place]!;
    this.#bytes = needed;
    this.#count++;
  }

  #grow(needed: number): void {
    const grown = new Uint8Array(
      Buffer.allocUnsafeSlow(Math.max(needed, FIRST_CAPACITY, 2 * this.#buffer.length)).buffer,
    );
    grown.set(this.bytes);
    this.#buffer = grown;
  }
}
