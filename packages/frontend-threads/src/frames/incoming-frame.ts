import { KIND_BITS, MOVED } from "./frame-kind.js";
import { WordReader } from "./word-reader.js";

/** Frames that have arrived in one piece of memory, one at a time: `open` goes to the next one. */
export class IncomingFrame extends WordReader {
  kind = 0;
  flags = 0;
  /** Number of the request. */
  number = 0;
  /** Memory that was handed over with the frame. */
  moved: readonly ArrayBuffer[] = NOTHING;
  #tensors = 0;
  readonly #takeMoved: () => readonly ArrayBuffer[];

  /** @param takeMoved returns the memory that was handed over with the next such frame */
  constructor(memory: ArrayBuffer, takeMoved: () => readonly ArrayBuffer[]) {
    super(memory);
    this.#takeMoved = takeMoved;
  }

  /**
   * Opens a frame.
   *
   * @param start its offset in the memory, a multiple of eight
   * @returns the offset after it
   */
  open(start: number): number {
    this.seek(start);
    const length = this.word();
    const word = this.word();
    this.kind = word & ((1 << KIND_BITS) - 1);
    this.flags = word >>> KIND_BITS;
    this.#tensors = start + this.word();
    this.number = this.word();
    this.moved = this.flags & MOVED ? this.#takeMoved() : NOTHING;
    return start + length;
  }

  /** Bytes inside the frame, by the offset that `place` returned. */
  placed(at: number, length: number): Uint8Array {
    return new Uint8Array(this.memory, this.#tensors + at, length);
  }
}

const NOTHING: readonly ArrayBuffer[] = [];
