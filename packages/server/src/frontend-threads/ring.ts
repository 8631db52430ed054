/*
 * A ring of frames in shared memory, with one thread that writes and one that reads:
 *
 *   words: HEAD | TAIL | SLEEPS | WAITS      data: ...tail [frame][frame][frame] head...
 *
 * A frame starts with its length in bytes, a multiple of 8, and does not go past the end of the data. If the next frame
 * would, a negative length marks the rest of the data as unused. HEAD and TAIL count units of 8 bytes, and wrap around
 * at 2^32.
 */

/** Units written so far. In cache lines of their own, because two threads write them. */
const HEAD = 0;
/** Units read so far. */
const TAIL = 16;
/** 1 while the reader waits for a wake-up. */
const SLEEPS = 32;
/** 1 while the writer waits for space. */
const WAITS = 48;

/** Bytes of the words before the data. */
const WORD_BYTES = 256;

/** Bytes of a unit. Tensors of all data types are aligned to it. */
const UNIT = 8;

/** Length that marks the rest of the data as unused. */
const SKIP = -1;

/** Bytes of data of a ring: some thousand small requests, or the few of medium size that one turn brings. */
const RING_BYTES = 1 << 20;

/** Most bytes of a frame. */
export const MAX_FRAME_BYTES = RING_BYTES / 4;

export function createRing(bytes = RING_BYTES): SharedArrayBuffer {
  return new SharedArrayBuffer(WORD_BYTES + bytes);
}

/** Rounds a number of bytes up to whole units. */
export function wholeUnits(bytes: number): number {
  return (bytes + UNIT - 1) & -UNIT;
}

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

/** Bytes after which another copy begins. Tensors are views, so a request that stays keeps this much memory. */
const COPY_BYTES = 16 * 1024;

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
