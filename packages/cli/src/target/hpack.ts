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

/*
 * The Huffman code of HPACK (RFC 7541, appendix B). It is canonical: codes of one length are consecutive numbers in the
 * order of their symbols, and follow on from those of the shorter lengths. So the lengths alone define it.
 */

/** Length of the code of each byte in bits, and of the end of a string (256). */
const LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const LONGEST = 30;
const END_OF_STRING = 256;

/** Of each length: its first code, the number of its codes, and their symbols. */
const levels = codeLevels();

interface Level {
  readonly first: number;
  readonly symbols: readonly number[];
}

function codeLevels(): readonly Level[] {
  const all: Level[] = [];
  let code = 0;
  for (let length = 1; length <= LONGEST; length++) {
    code *= 2;
    const symbols = LENGTHS.flatMap((bits, symbol) => (bits === length ? [symbol] : []));
    all.push({ first: code, symbols });
    code += symbols.length;
  }
  return all;
}

function decodeHuffman(bytes: Uint8Array): string {
  const out: number[] = [];
  let code = 0;
  let length = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1);
      const level = levels[length++];
      if (level === undefined) throw new Error("invalid Huffman code in a header");
      const index = code - level.first;
      if (index >= level.symbols.length) continue;
      const symbol = level.symbols[index]!;
      if (symbol === END_OF_STRING) throw new Error("invalid Huffman code in a header");
      out.push(symbol);
      code = 0;
      length = 0;
    }
  }
  return Buffer.from(out).toString("latin1");
}
