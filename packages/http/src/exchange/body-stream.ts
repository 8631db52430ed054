/** Bytes that may wait for a slow client before the sender is asked to pause. */
const HIGH_WATER_BYTES = 64 * 1024;

/** Events for the sender of a body. */
export interface BodyStreamListener {
  /** Called when there is room again after `write` returned false. */
  onDrain(): void;
  /** Called when the reader cancels. */
  onCancel(): void;
}

/** A body that one reader reads while it is written. */
export class BodyStream implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #listener: BodyStreamListener;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  #full = false;
  #ended = false;
  #reader: ((result: IteratorResult<Uint8Array>) => void) | undefined;

  constructor(listener: BodyStreamListener) {
    this.#listener = listener;
  }

  /** Adds a piece. Returns false when the sender should wait for `onDrain`. */
  write(piece: Uint8Array): boolean {
    if (this.#ended) return true;
    const reader = this.#reader;
    if (reader !== undefined) {
      this.#reader = undefined;
      reader({ done: false, value: piece });
      return true;
    }
    this.#pieces.push(piece);
    this.#waitingBytes += piece.length;
    this.#full = this.#waitingBytes >= HIGH_WATER_BYTES;
    return !this.#full;
  }

  /** Ends the body after the pieces written so far. */
  end(): void {
    this.#ended = true;
    this.#reader?.({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    const value = this.#pieces.shift();
    if (value !== undefined) {
      this.#waitingBytes -= value.length;
      if (this.#full && this.#waitingBytes < HIGH_WATER_BYTES) {
        this.#full = false;
        this.#listener.onDrain();
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  return(): Promise<IteratorResult<Uint8Array>> {
    this.#pieces = [];
    const cancelled = !this.#ended;
    this.end();
    if (cancelled) this.#listener.onCancel();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
