import { isUtf8 } from "node:buffer";

/*
 * Names, ids and parameters are strings in the library and bytes in messages. Bytes that are not UTF-8 must come back
 * unchanged. So each of them becomes the lone surrogate U+DC00 + byte, which no valid text contains. Writing the string
 * turns it back into the byte.
 */

const ESCAPE_BASE = 0xdc00;
const loneLowSurrogate = /(?<![\ud800-\udbff])[\udc80-\udcff]/;

/** Recently read texts, each at an index computed from a few of its bytes: the same names come again and again. */
const recent: string[] = new Array<string>(256).fill("");
const MAX_RECENT_BYTES = 32;

/** Decodes bytes that should be UTF-8. Every byte sequence has a string, and {@link encodeText} restores the bytes. */
export function decodeText(bytes: Uint8Array): string {
  const { length } = bytes;
  if (length === 0 || length > MAX_RECENT_BYTES) return decode(bytes);
  const place = (bytes[0]! * 31 + bytes[length - 1]! * 7 + bytes[length >> 1]! + length) & 255;
  const text = recent[place]!;
  if (isAscii(text, bytes)) return text;
  const decoded = decode(bytes);
  recent[place] = decoded;
  return decoded;
}

/** True when these bytes are ASCII and equal the text. */
function isAscii(text: string, bytes: Uint8Array): boolean {
  if (text.length !== bytes.length) return false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte > 0x7f || text.charCodeAt(i) !== byte) return false;
  }
  return true;
}

function decode(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer) ? buffer.toString("utf8") : decodeEscaped(buffer);
}

/** Encodes a string as UTF-8, and restores the bytes that {@link decodeText} could not decode. */
export function encodeText(text: string): Buffer {
  if (!loneLowSurrogate.test(text)) return Buffer.from(text, "utf8");
  const parts: Buffer[] = [];
  for (const character of text) {
    const code = character.codePointAt(0)!;
    const escaped = code >= ESCAPE_BASE + 0x80 && code <= ESCAPE_BASE + 0xff;
    parts.push(escaped ? Buffer.of(code - ESCAPE_BASE) : Buffer.from(character, "utf8"));
  }
  return Buffer.concat(parts);
}

function decodeEscaped(buffer: Buffer): string {
  let text = "";
  let at = 0;
  while (at < buffer.length) {
    const length = sequenceLength(buffer, at);
    text +=
      length === 0
        ? String.fromCharCode(ESCAPE_BASE + buffer[at]!)
        : buffer.toString("utf8", at, at + length);
    at += Math.max(1, length);
  }
  return text;
}

/** Bytes of the valid UTF-8 sequence at `at`; 0 when there is none. */
function sequenceLength(buffer: Buffer, at: number): number {
  const lead = buffer[at]!;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return at + length <= buffer.length && isUtf8(buffer.subarray(at, at + length)) ? length : 0;
}
