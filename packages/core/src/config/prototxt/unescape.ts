const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const ESCAPE =
  /\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]?))/g;

/**
 * The bytes that a string literal stands for, one character each.
 *
 * @param literal with its quotes, its bytes one character each
 */
export function unescapeLiteral(literal: string): string {
  const isClosed = literal.length > 1 && literal.endsWith(literal.charAt(0));
  const body = literal.slice(1, isClosed ? -1 : undefined);
  if (!body.includes("\\")) return body;
  return body.replace(ESCAPE, (_, octal, hex, high, low, unicode, wide, other: string) => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    if (high !== undefined) return utf8(surrogates(Number.parseInt(high, 16), Number.parseInt(low, 16)));
    if (unicode !== undefined) return utf8(Number.parseInt(unicode, 16));
    if (wide !== undefined) return utf8(Math.min(Number.parseInt(wide, 16), 0x10ffff));
    return SIMPLE[other] ?? other;
  });
}

function surrogates(high: number, low: number): number {
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

function utf8(codePoint: number): string {
  return Buffer.from(String.fromCodePoint(codePoint), "utf8").toString("latin1");
}
