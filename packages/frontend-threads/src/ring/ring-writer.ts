import { HEAD, SKIP, SLEEPS, TAIL, UNIT, WAITS, WORD_BYTES, wholeUnits } from "./ring-words.js";

/** The writing end of a ring. */
export class RingWriter {
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #lengths: Int32Array;
  /** Units written, of which the reader has not been told all. */
  #head = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, WORD_BYTES / 4);
    this.#bytes = new Uint8Array(memory, WORD_BYTES);
    this.#lengths = new Int32Array(memory, WORD_BYTES);
  }

  /**
   * Writes a frame of several parts, each of which begins at a whole unit. The reader sees it after `publish`. Returns
   * false if there is no space.
   *
   * @param size bytes of the frame, whose first part begins with this number
   */
  write(parts: readonly Uint8Array[], size: number): boolean {
    let at = this.#place;
    const skipped = this.#skipFor(size);
    if (!this.fits(size)) return false;
    if (skipped > 0) {
      this.#lengths[at >> 2] = SKIP;
      at = 0;
    }
    for (const part of parts) {
      this.#bytes.set(part, at);
      at += wholeUnits(part.length);
    }
    this.#head = (this.#head + (skipped + size) / UNIT) | 0;
    return true;
  }

  /** True if there is space for a frame. */
  fits(size: number): boolean {
    const used = ((this.#head - Atomics.load(this.#words, TAIL)) >>> 0) * UNIT;
    return used + this.#skipFor(size) + size <= this.#bytes.length;
  }

  /** Shows the reader the frames written so far. Returns true if it has to be woken up. */
  publish(): boolean {
    Atomics.store(this.#words, HEAD, this.#head);
    return Atomics.exchange(this.#words, SLEEPS, 0) === 1;
  }

  /** Asks the reader for a wake-up when it has read something. */
  awaitSpace(): void {
    Atomics.store(this.#words, WAITS, 1);
  }

  /** Offset of the next frame. */
  get #place(): number {
    return ((this.#head >>> 0) * UNIT) % this.#bytes.length;
  }

  /** Bytes at the end of the data that remain unused because the frame does not fit there. */
  #skipFor(size: number): number {
    const left = this.#bytes.length - this.#place;
    return size > left ? left : 0;
  }
}
