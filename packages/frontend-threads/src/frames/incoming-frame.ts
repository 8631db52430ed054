import { KIND_BITS, MOVED } from "./frame-kind.js";
import { WordReader } from "./word-reader.js";

/** A frame that has arrived. */
export class IncomingFrame extends WordReader {
  readonly kind: number;
  readonly flags: number;
  /** Number of the request. */
  readonly number: number;
  /** Memory that was handed over with the frame. */
  readonly moved: readonly ArrayBuffer[];
  readonly #tensors: number;

  /** @param takeMoved returns the memory that was handed over with the next such frame */
  constructor(memory: ArrayBuffer, start: number, takeMoved: () => readonly ArrayBuffer[]) {
    super(memory, start + 4);
    const word = this.word();
    this.kind = word & ((1 << KIND_BITS) - 1);
    this.flags = word >>> KIND_BITS;
    this.#tensors = start + this.word();
    this.number = this.word();
    this.moved = this.flags & MOVED ? takeMoved() : NOTHING;
  }

  /** Bytes inside the frame, by the offset that `place` returned. */
  placed(at: number, length: number): Uint8Array {
    return new Uint8Array(this.memory, this.#tensors + at, length);
  }
}

const NOTHING: readonly ArrayBuffer[] = [];
