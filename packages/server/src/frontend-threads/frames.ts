import { NO_PARAMETERS, type Parameters, type ParameterValue } from "@tritonjs/protocol";
import { MAX_FRAME_BYTES, wholeUnits } from "./ring.js";

export const KIND = {
  request: 1,
  /** The sender gives a request up. */
  cancel: 2,
  /** The sender can take no more responses for now. */
  pause: 3,
  /** The sender can take responses again. */
  resume: 4,
  /** The sender wants no more responses. */
  stop: 5,
  /** A response, an error, or the end of a request. */
  response: 6,
  /** The frame itself is in memory that was handed over, because it is too large for the ring. */
  oversized: 7,
  /** The last marks of the trace of a request, which is over. */
  traced: 8,
} as const;

/** Bits of the second word before the flags: those of the kind. */
const KIND_BITS = 4;

/** Flag of every kind of frame: memory was handed over with it. */
export const MOVED = 1;

const FIRST_CAPACITY = 4096;

/** Length up to which copying a text character by character is faster than a call of Node's. */
const SHORT_TEXT = 24;

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

const VALUE = { false: 0, true: 1, number: 2, text: 3, bigint: 4 } as const;

/** Writes numbers and texts one after the other, in words of four bytes. The memory is used again for the next frame. */
class WordWriter {
  #buffer = Buffer.allocUnsafeSlow(FIRST_CAPACITY);
  #words = new Int32Array(this.#buffer.buffer, 0, FIRST_CAPACITY / 4);
  #at = 0;

  begin(): void {
    this.#at = 0;
  }

  get length(): number {
    return this.#at;
  }

  word(value: number): void {
    if (this.#at + 4 > this.#buffer.length) this.#grow(4);
    this.#words[this.#at >> 2] = value;
    this.#at += 4;
  }

  setWord(at: number, value: number): void {
    this.#words[at >> 2] = value;
  }

  double(value: number): void {
    double[0] = value;
    this.word(halves[0]!);
    this.word(halves[1]!);
  }

  text(value: string): void {
    const { length } = value;
    const most = 3 * length + 8;
    if (this.#at + most > this.#buffer.length) this.#grow(most);
    const start = this.#at + 4;
    const buffer = this.#buffer;
    let bytes = 0;
    if (length <= SHORT_TEXT) {
      for (; bytes < length; bytes++) {
        const code = value.charCodeAt(bytes);
        if (code > 127) break;
        buffer[start + bytes] = code;
      }
    }
    if (bytes < length) bytes = buffer.write(value, start, "utf8");
    this.#words[this.#at >> 2] = bytes;
    this.#at = (start + bytes + 3) & -4;
  }

  parameters(values: Parameters): void {
    const names = Object.keys(values);
    this.word(names.length);
    for (const name of names) {
      this.text(name);
      this.#value(values[name]!);
    }
  }

  /** The written bytes, until the next `begin`. The end is padded to a multiple of eight bytes. */
  bytes(): Uint8Array {
    if (this.#at % 8 !== 0) this.word(0);
    return this.#buffer.subarray(0, this.#at);
  }

  #value(value: ParameterValue): void {
    switch (typeof value) {
      case "boolean":
        this.word(value ? VALUE.true : VALUE.false);
        break;
      case "number":
        this.word(VALUE.number);
        this.double(value);
        break;
      case "bigint":
        this.word(VALUE.bigint);
        this.text(String(value));
        break;
      default:
        this.word(VALUE.text);
        this.text(value);
    }
  }

  #grow(needed: number): void {
    const capacity = Math.max(2 * this.#buffer.length, (this.#at + needed + 7) & -8);
    const grown = Buffer.allocUnsafeSlow(capacity);
    grown.set(this.#buffer.subarray(0, this.#at));
    this.#buffer = grown;
    this.#words = new Int32Array(grown.buffer, 0, capacity >> 2);
  }
}

class WordReader {
  /** Memory of the frames, of which tensors are views. */
  readonly memory: ArrayBuffer;
  readonly #buffer: Buffer;
  readonly #words: Int32Array;
  #at = 0;

  constructor(memory: ArrayBuffer) {
    this.memory = memory;
    this.#buffer = Buffer.from(memory);
    this.#words = new Int32Array(memory);
  }

  get position(): number {
    return this.#at;
  }

  seek(position: number): void {
    this.#at = position;
  }

  word(): number {
    const value = this.#words[this.#at >> 2]!;
    this.#at += 4;
    return value;
  }

  double(): number {
    halves[0] = this.word();
    halves[1] = this.word();
    return double[0]!;
  }

  text(): string {
    const length = this.word();
    if (length === 0) return "";
    const start = this.#at;
    this.#at = (start + length + 3) & -4;
    return this.#buffer.toString("utf8", start, start + length);
  }

  parameters(): Parameters {
    const count = this.word();
    if (count === 0) return NO_PARAMETERS;
    const values: Record<string, ParameterValue> = Object.create(null);
    for (let i = 0; i < count; i++) {
      const name = this.text();
      values[name] = this.#value();
    }
    return values;
  }

  #value(): ParameterValue {
    switch (this.word()) {
      case VALUE.false:
        return false;
      case VALUE.true:
        return true;
      case VALUE.number:
        return this.double();
      case VALUE.bigint:
        return BigInt(this.text());
      default:
        return this.text();
    }
  }
}

/** Bytes up to which a tensor is copied into the ring. Memory of larger tensors is handed over. */
const INLINE_BYTES = 64 * 1024;

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

  get size(): number {
    return wholeUnits(this.length) + this.#inlineBytes;
  }
}

/** Frames that have arrived in one piece of memory, one at a time: `open` goes to the next one. */
export class IncomingFrame extends WordReader {
  kind = 0;
  flags = 0;
  number = 0;
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
