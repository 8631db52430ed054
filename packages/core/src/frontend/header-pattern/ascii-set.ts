/** A set of characters of header names, which are ASCII. Element `code` is true if the character is in the set. */
export type AsciiSet = readonly boolean[];

const SIZE = 128;
const CASE_BIT = 0x20;

/** The characters that a predicate accepts. */
export function setOf(accepts: (code: number) => boolean): AsciiSet {
  return Array.from({ length: SIZE }, (_, code) => accepts(code));
}

/** The characters from `low` to `high`. */
export function rangeSet(low: number, high: number): AsciiSet {
  return setOf((code) => code >= low && code <= high);
}

export function union(...sets: readonly AsciiSet[]): AsciiSet {
  return setOf((code) => sets.some((set) => set[code]));
}

export function complement(set: AsciiSet): AsciiSet {
  return setOf((code) => !set[code]);
}

/** The set with the other case of each of its letters. */
export function folded(set: AsciiSet): AsciiSet {
  return setOf((code) => set[code]! || (isLetter(code) && set[code ^ CASE_BIT]!));
}

/** The set as a character class of a JavaScript expression. */
export function classText(set: AsciiSet): string {
  const members = set.flatMap((isIn, code) => (isIn ? [`\\x${code.toString(16).padStart(2, "0")}`] : []));
  return `[${members.join("")}]`;
}

/** The set that an expression for single characters matches. */
export function matching(expression: RegExp): AsciiSet {
  return setOf((code) => expression.test(String.fromCharCode(code)));
}

function isLetter(code: number): boolean {
  const upper = code & ~CASE_BIT;
  return upper >= 0x41 && upper <= 0x5a;
}
