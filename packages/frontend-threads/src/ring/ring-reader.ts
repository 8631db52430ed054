import { HEAD, SKIP, SLEEPS, TAIL, UNIT, WAITS, WORD_BYTES } from "./ring-words.js";

/**
 * Bytes after which the reader begins another copy. Tensors are views of a copy, so a request that stays for long keeps
 * this much memory.
 */
const COPY_BYTES = 16 * 1024;

/** The reading end of a ring. */
export class RingReader {
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #lengths: Int32Array;
  #tail = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, WORD_BYTES / 4);
    this.#bytes = new Uint8Array(memory, WORD_BYTES);
    this.#lengths = new Int32Array(memory, WORD_BYTES);
  }

  /** Copies the next frames out of the ring, in one piece; undefined if there are none. */
  read(): ArrayBuffer | undefined {
    const capacity = this.#bytes.length;
    let left = ((Atomics.load(this.#words, HEAD) - this.#tail) >>> 0) * UNIT;
    let start = ((this.#tail >>> 0) * UNIT) % capacity;
    if (left > 0 && this.#lengths[start >> 2] === SKIP) {
      left -= capacity - start;
      this.#advance(capacity - start);
      start = 0;
    }
    if (left === 0) return undefined;
    let end = start;
    while (end - start < left && end < capacity) {
      const length = this.#lengths[end >> 2]!;
      if (length === SKIP || (end > start && end + length - start > COPY_BYTES)) break;
      end += length;
    }
    const copy = new ArrayBuffer(end - start);
    new Uint8Array(copy).set(this.#bytes.subarray(start, end));
    this.#advance(end - start);
    return copy;
  }

  /** Returns true, once, if the writer waits for space and there is some now. */
  wasAwaited(): boolean {
    return Atomics.load(this.#words, WAITS) === 1 && Atomics.exchange(this.#words, WAITS, 0) === 1;
  }

  /** Asks the writer for a wake-up. Returns false if there are frames already. */
  sleep(): boolean {
    Atomics.store(this.#words, SLEEPS, 1);
    if (Atomics.load(this.#words, HEAD) === this.#tail) return true;
    Atomics.store(this.#words, SLEEPS, 0);
    return false;
  }

  #advance(bytes: number): void {
    this.#tail = (this.#tail + bytes / UNIT) | 0;
    Atomics.store(this.#words, TAIL, this.#tail);
  }
}
