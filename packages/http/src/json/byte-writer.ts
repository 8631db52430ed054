import { doubleText } from "@tritonjs/protocol";
import { encodeText } from "./text.js";
import { MAX_DOUBLE_BYTES, writeDouble } from "./write-double.js";

const FIRST_CAPACITY = 1024;

/** Longest text that waits to be written, in characters. */
const MAX_PENDING = 4096;

/** Bytes of a computed double and its comma, as a rule. */
const USUAL_DOUBLE_BYTES = 20;
/** Doubles per check for room. */
const DOUBLES_AT_A_TIME = 1024;

/** Characters that are one byte in UTF-8 and need no escape in a JSON string. */
const plain = /^[ !#-[\]-~]*$/;

/** A growing buffer of bytes. ASCII text is collected, and written in one call before other bytes and at the end. */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;
  #pending = "";

  constructor(capacity = FIRST_CAPACITY) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  /** A view of the bytes written so far. */
  bytes(): Buffer {
    this.#flush();
    return this.#buffer.subarray(0, this.#length);
  }

  /** Writes text that the caller knows to be ASCII. */
  ascii(text: string): this {
    this.#pending += text;
    if (this.#pending.length > MAX_PENDING) this.#flush();
    return this;
  }

  /** Writes doubles with a comma between them. */
  doubles(values: Float32Array | Float64Array): this {
    this.#reserve(this.#pending.length + values.length * USUAL_DOUBLE_BYTES);
    for (let from = 0; from < values.length; from += DOUBLES_AT_A_TIME) {
      const to = Math.min(from + DOUBLES_AT_A_TIME, values.length);
      this.#flush();
      this.#reserve((to - from) * (MAX_DOUBLE_BYTES + 1));
      const buffer = this.#buffer;
      let at = this.#length;
      for (let i = from; i < to; i++) {
        if (i > 0) buffer[at++] = 0x2c;
        const end = writeDouble(buffer, at, values[i]!);
        at = end < 0 ? writeShort(buffer, at, doubleText(values[i]!)) : end;
      }
      this.#length = at;
    }
    return this;
  }

  /** Writes a JSON string. */
  string(text: string): this {
    return plain.test(text) ? this.ascii(`"${text}"`) : this.stringBytes(encodeText(text));
  }

  /**
   * Writes bytes as a JSON string, with Triton's escapes: the quote, the backslash and bytes below 0x20. Other bytes
   * are written unchanged, even if they are not valid UTF-8.
   */
  stringBytes(bytes: Uint8Array, from = 0, end = bytes.length): this {
    this.#flush();
    this.#reserve((end - from) * 6 + 2);
    const buffer = this.#buffer;
    let at = this.#length;
    buffer[at++] = 0x22;
    for (let i = from; i < end; i++) {
      const byte = bytes[i]!;
      if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) buffer[at++] = byte;
      else at += buffer.write(escapeOf(byte), at, "latin1");
    }
    buffer[at++] = 0x22;
    this.#length = at;
    return this;
  }

  #flush(): void {
    const text = this.#pending;
    if (text === "") return;
    this.#pending = "";
    this.#reserve(text.length);
    this.#length += this.#buffer.write(text, this.#length, "latin1");
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}

/** Writes a few characters in a loop: a native call would take longer. */
function writeShort(buffer: Buffer, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i);
  return at + text.length;
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
