import { decodeHuffman } from "./huffman.js";

/* Header compression of HTTP/2 (RFC 7541), as far as a load generator needs it. */

/** Names of the static table from index 1 on. */
const STATIC_NAMES = (
  ":authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status :status " +
  "accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow " +
  "authorization cache-control content-disposition content-encoding content-language content-length " +
  "content-location content-range content-type cookie date etag expect expires from host if-match if-modified-since " +
  "if-none-match if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate " +
  "proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security " +
  "transfer-encoding user-agent vary via www-authenticate"
).split(" ");

/** Values of the static table that responses use, by index. */
const STATIC_VALUES: Readonly<Record<number, string>> = {
  2: "GET",
  3: "POST",
  4: "/",
  5: "/index.html",
  6: "http",
  7: "https",
  8: "200",
  9: "204",
  10: "206",
  11: "304",
  12: "400",
  13: "404",
  14: "500",
  16: "gzip, deflate",
};

const STATIC_COUNT = STATIC_NAMES.length;
/** Size of an entry of the dynamic table beyond its texts. */
const ENTRY_BYTES = 32;

/** A request's headers in three forms. */
export interface HeaderBlocks {
  /** Literals only. */
  readonly plain: Buffer;
  /** Puts all headers into the server's table. */
  readonly adding: Buffer;
  /** Refers to the server's table, once `adding` was sent. */
  readonly added: Buffer;
  /** Bytes of the table that they need. */
  readonly tableBytes: number;
}

/** Encodes headers that every request of a connection has. Pseudo-headers come first. */
export function headerBlocks(headers: readonly (readonly [name: string, value: string])[]): HeaderBlocks {
  const texts = headers.map(([name, value]) => Buffer.concat([literal(name), literal(value)]));
  const form = (prefix: number) => Buffer.concat(texts.flatMap((text) => [Buffer.of(prefix), text]));
  const newest = STATIC_COUNT + 1;
  return {
    plain: form(0x00),
    adding: form(0x40),
    // The entry that was added last has the lowest index.
    added: Buffer.concat(headers.map((_, i) => integer(0x80, 7, newest + headers.length - 1 - i))),
    tableBytes: headers.reduce(
      (sum, [name, value]) => sum + ENTRY_BYTES + Buffer.byteLength(name) + Buffer.byteLength(value),
      0,
    ),
  };
}

/** A text without Huffman code. */
function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([integer(0x00, 7, bytes.length), bytes]);
}

/** A whole number in a prefix of `bits` bits, and further bytes. */
function integer(pattern: number, bits: number, value: number): Buffer {
  const limit = 2 ** bits - 1;
  if (value < limit) return Buffer.of(pattern | value);
  const bytes = [pattern | limit];
  let left = value - limit;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  bytes.push(left);
  return Buffer.from(bytes);
}

/**
 * Decodes a block of headers. The client's settings forbid a dynamic table, so blocks do not depend on earlier ones.
 *
 * @throws Error for an invalid block.
 */
export function decodeHeaders(block: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  const number = (bits: number): number => {
    const limit = 2 ** bits - 1;
    let value = byteAt(block, at++) & limit;
    if (value < limit) return value;
    for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
      const byte = byteAt(block, at++);
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Error("a number in a header is too large");
  };
  const text = (): string => {
    const isCoded = byteAt(block, at) >= 0x80;
    const length = number(7);
    if (at + length > block.length) throw new Error("a header block ends too early");
    const bytes = block.subarray(at, at + length);
    at += length;
    return isCoded ? decodeHuffman(bytes) : bytes.toString("latin1");
  };
  while (at < block.length) {
    const first = block[at]!;
    if (first >= 0x80) {
      const index = number(7);
      headers.set(staticName(index), STATIC_VALUES[index] ?? "");
    } else if (first >= 0x20 && first < 0x40) {
      // The size of the table, which stays empty.
      number(5);
    } else {
      const index = number(first >= 0x40 ? 6 : 4);
      const name = index === 0 ? text() : staticName(index);
      headers.set(name, text());
    }
  }
  return headers;
}

function byteAt(block: Buffer, at: number): number {
  const byte = block[at];
  if (byte === undefined) throw new Error("a header block ends too early");
  return byte;
}

function staticName(index: number): string {
  const name = STATIC_NAMES[index - 1];
  if (name === undefined) throw new Error(`a header refers to entry ${index} of a table, which has none`);
  return name;
}
