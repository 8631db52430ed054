import { NO_PARAMETERS, type Parameters, type ParameterValue } from "@tritonjs/protocol";
import { VALUE } from "./word-writer.js";

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

/** Reads what a `WordWriter` wrote. */
export class WordReader {
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

  /** Offset of the next word. */
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
