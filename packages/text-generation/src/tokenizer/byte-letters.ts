/**
 * The letters of byte-level vocabularies: GPT-2 spells each byte as a printable character. Bytes that are printable
 * are themselves; the others follow from U+0100.
 */
const bytesOfLetters: ReadonlyMap<string, number> = makeLetters();

/** The bytes that a token of a byte-level vocabulary stands for; undefined if the token has other characters. */
export function bytesOfSpelling(spelling: string): Uint8Array | undefined {
  const bytes: number[] = [];
  for (const letter of spelling) {
    const byte = bytesOfLetters.get(letter);
    if (byte === undefined) return undefined;
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

function makeLetters(): Map<string, number> {
  const letters = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    letters.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return letters;
}
