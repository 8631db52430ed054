import { MAX_FRAME_BYTES, wholeUnits } from "../ring/ring-words.js";
import { KIND_BITS, MOVED } from "./frame-kind.js";
import { WordWriter } from "./word-writer.js";

/** Bytes up to which a tensor is copied into the ring. Memory of larger tensors is handed over. */
export const INLINE_BYTES = 64 * 1024;

/** Most bytes of tensors inside a frame. */
const MAX_INLINE_BYTES = MAX_FRAME_BYTES / 2;

/**
 * A frame to be sent, which is used again for the next one:
 *
 *   length | kind, flags | start of the tensors | number of the request | further words and texts | tensors
 */
export class OutgoingFrame extends WordWriter {
  /** Memory that is handed over with the frame. */
  moved: ArrayBuffer[] = [];
  #inline: Uint8Array[] = [];
  #inlineBytes = 0;
  #kind = 0;

  /** Begins a frame about the request of a number. */
  open(kind: number, number: number): this {
    this.#kind = kind;
    if (this.moved.length > 0) this.moved = [];
    if (this.#inline.length > 0) this.#inline = [];
    this.#inlineBytes = 0;
    this.begin();
    this.word(0);
    this.word(0);
    this.word(0);
    this.word(number);
    return this;
  }

  /** Takes the bytes of a tensor into the frame, and returns their offset; undefined if there is no room. */
  place(bytes: Uint8Array): number | undefined {
    const at = this.#inlineBytes;
    if (bytes.length > INLINE_BYTES || at + bytes.length > MAX_INLINE_BYTES) return undefined;
    this.#inline.push(bytes);
    this.#inlineBytes = at + wholeUnits(bytes.length);
    return at;
  }

  /** Hands memory over with the frame, and returns its number. */
  hand(memory: ArrayBuffer): number {
    const known = this.moved.indexOf(memory);
    return known >= 0 ? known : this.moved.push(memory) - 1;
  }

  /** Ends the frame. */
  close(flags: number): void {
    const start = wholeUnits(this.length);
    this.setWord(0, start + this.#inlineBytes);
    this.setWord(4, this.#kind | ((flags | (this.moved.length > 0 ? MOVED : 0)) << KIND_BITS));
    this.setWord(8, start);
  }

  /** The parts of the closed frame. Each begins at a whole unit. */
  parts(): Uint8Array[] {
    return [this.bytes(), ...this.#inline];
  }

  /** Bytes of the closed frame. */
  get size(): number {
    return wholeUnits(this.length) + this.#inlineBytes;
  }
}
