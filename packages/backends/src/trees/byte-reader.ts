import { invalidModel } from "./forest.js";

/** Reads numbers and arrays from a file, one after another. Nothing is read or allocated beyond the end of the file. */
export class ByteReader {
  readonly #view: DataView;
  #at = 0;

  /**
   * @param bytes the file
   * @param format name of the format, for errors
   * @param littleEndian byte order of numbers
   */
  constructor(
    readonly bytes: Uint8Array,
    readonly format: string,
    private readonly littleEndian: boolean,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Number of bytes read. */
  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.bytes.byteLength - this.#at;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  int8(): number {
    return this.#view.getInt8(this.#take(1));
  }

  int16(): number {
    return this.#view.getInt16(this.#take(2), this.littleEndian);
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4), this.littleEndian);
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), this.littleEndian);
  }

  float32(): number {
    return this.#view.getFloat32(this.#take(4), this.littleEndian);
  }

  float64(): number {
    return this.#view.getFloat64(this.#take(8), this.littleEndian);
  }

  /** A 64-bit integer; inexact above 2^53. */
  int64(): number {
    return Number(this.#view.getBigInt64(this.#take(8), this.littleEndian));
  }

  uint64(): number {
    return Number(this.#view.getBigUint64(this.#take(8), this.littleEndian));
  }

  skip(count: number): void {
    this.#take(count);
  }

  text(length: number): string {
    const start = this.#take(length);
    return new TextDecoder().decode(this.bytes.subarray(start, start + length));
  }

  /**
   * The next `count` elements of `size` bytes, as bytes that are aligned for a typed array.
   *
   * @throws TritonError INVALID_ARG if the file has fewer
   */
  elements(count: number, size: number): ArrayBuffer {
    const start = this.#take(count * size);
    const copy = new Uint8Array(count * size);
    copy.set(this.bytes.subarray(start, start + count * size));
    return copy.buffer;
  }

  #take(count: number): number {
    if (!(count >= 0) || count > this.left) {
      throw invalidModel(
        `${this.format}: the file is cut off: expected ${count} bytes at offset ${this.#at}, got ${this.left}`,
      );
    }
    const start = this.#at;
    this.#at += count;
    return start;
  }
}
