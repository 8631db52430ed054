import type { Parameters, ParameterValue } from "@tritonjs/protocol";

const FIRST_CAPACITY = 4096;

/** Length up to which copying a text character by character is faster than a call of Node's. */
const SHORT_TEXT = 24;

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

/** Kinds of parameter values. */
export const VALUE = { false: 0, true: 1, number: 2, text: 3, bigint: 4 } as const;

/** Writes numbers and texts one after the other, in words of four bytes. The memory is used again for the next frame. */
export class WordWriter {
  #buffer = Buffer.allocUnsafeSlow(FIRST_CAPACITY);
  #words = new Int32Array(this.#buffer.buffer, 0, FIRST_CAPACITY / 4);
  #at = 0;

  /** Begins a frame. */
  begin(): void {
    this.#at = 0;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#at;
  }

  word(value: number): void {
    if (this.#at + 4 > this.#buffer.length) this.#grow(4);
    this.#words[this.#at >> 2] = value;
    this.#at += 4;
  }

  /** Replaces a word that was written before. */
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

  /** What was written, until the next `begin`. The end is padded to a multiple of eight bytes. */
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
