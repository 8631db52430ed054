import { encodeText } from "./text.js";

const FIRST_CAPACITY = 1024;

/** Bytes that grow as they are written. */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(capacity = FIRST_CAPACITY) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** What was written so far: a view. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Writes text that is known to be ASCII. */
  ascii(text: string): this {
    this.#reserve(text.length);
    this.#length += this.#buffer.write(text, this.#length, "latin1");
    return this;
  }

  /** Writes a JSON string. */
  string(text: string): this {
    return this.stringBytes(encodeText(text));
  }

  /**
   * Writes bytes as a JSON string, with Triton's choice of escapes: the quote, the backslash and what lies below
   * 0x20. Other bytes go out as they are, whether they are UTF-8 or not.
   */
  stringBytes(bytes: Uint8Array): this {
    this.#reserve(bytes.length * 6 + 2);
    const buffer = this.#buffer;
    let at = this.#length;
    buffer[at++] = 0x22;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!;
      if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) buffer[at++] = byte;
      else at += buffer.write(escapeOf(byte), at, "latin1");
    }
    buffer[at++] = 0x22;
    this.#length = at;
    return this;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    grown.set(this.bytes());
    this.#buffer = grown;
  }
}

const shortEscapes = new Map([
  [0x08, "\\b"],
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0c, "\\f"],
  [0x0d, "\\r"],
  [0x22, '\\"'],
  [0x5c, "\\\\"],
]);

function escapeOf(byte: number): string {
  return shortEscapes.get(byte) ?? `\\u${byte.toString(16).toUpperCase().padStart(4, "0")}`;
}
