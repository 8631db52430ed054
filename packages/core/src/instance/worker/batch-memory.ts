/** Smaller inputs are allocated for each batch, because that costs less than a buffer that comes back. */
const LEAST_BYTES = 64 * 1024;
const MOST_BUFFERS = 8;
const MOST_BYTES = 64 * 1024 * 1024;
/** A buffer is not used for inputs of less than this share of it. */
const LEAST_SHARE = 1 / 4;

/**
 * Memory for the inputs of batches, which a worker thread sends back with its answers. Pages that are in use already are
 * filled in a sixth of the time that new ones take. Keeps at most 8 buffers, and 64 MiB.
 */
export class BatchMemory {
  /** Longest unused first. */
  readonly #free: ArrayBuffer[] = [];

  /** Returns memory of this size. It has the contents of an earlier batch, so all of it must be written. */
  allocate(byteSize: number): Uint8Array<ArrayBuffer> {
    if (byteSize < LEAST_BYTES || byteSize > MOST_BYTES) return new Uint8Array(byteSize);
    let best = -1;
    for (const [at, { byteLength }] of this.#free.entries()) {
      if (byteLength < byteSize || byteLength * LEAST_SHARE > byteSize) continue;
      if (best < 0 || byteLength < this.#free[best]!.byteLength) best = at;
    }
    const buffer = best < 0 ? new ArrayBuffer(byteSize) : this.#free.splice(best, 1)[0]!;
    return new Uint8Array(buffer, 0, byteSize);
  }

  /** Takes back the memory of a batch. */
  release(buffers: readonly ArrayBuffer[]): void {
    this.#free.push(...buffers.filter(({ byteLength }) => byteLength >= LEAST_BYTES));
    let bytes = this.#free.reduce((sum, { byteLength }) => sum + byteLength, 0);
    while (this.#free.length > MOST_BUFFERS || bytes > MOST_BYTES) bytes -= this.#free.shift()!.byteLength;
  }
}
