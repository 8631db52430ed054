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

/** Decodes a string. @throws Error for bytes that are not Huffman-coded text. */
export function decodeHuffman(bytes: Uint8Array): string {
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
