import { type AsciiSet, complement, folded, rangeSet, union } from "./ascii-set.js";
import { perlSet, posixSet, unicodeSet } from "./named-sets.js";
import { PatternFault, type PatternReader } from "./pattern-reader.js";

/** Reads a class in brackets. @param fold whether matching is case-insensitive */
export function readClass(reader: PatternReader, fold: boolean): AsciiSet {
  const start = reader.at;
  reader.skip("[");
  const negated = reader.skip("^");
  const sets: AsciiSet[] = [];
  for (let first = true; first || !reader.sees("]"); first = false) {
    if (reader.ended) throw new PatternFault(`missing ]: ${reader.text.slice(start)}`);
    sets.push(readPosix(reader) ?? readNamedSet(reader) ?? readRange(reader));
  }
  reader.skip("]");
  const set = fold ? folded(union(...sets)) : union(...sets);
  return negated ? complement(set) : set;
}

/** Reads `\d`, `\pL`, `\p{Greek}` and similar sets. Undefined if the text continues with anything else. */
export function readNamedSet(reader: PatternReader): AsciiSet | undefined {
  const perl = reader.match(/\\([dswDSW])/y);
  if (perl !== undefined) return perlSet(perl[1]!);
  if (!reader.sees("\\p") && !reader.sees("\\P")) return undefined;
  const start = reader.at;
  const named = reader.match(/\\([pP])(?:\{([^}]*)\}|([^{]))/y);
  const set = named && unicodeSet(named[2] ?? named[3]!);
  if (set === undefined) {
    throw new PatternFault(`invalid character class range: ${named?.[0] ?? reader.text.slice(start)}`);
  }
  return named![1] === "P" ? complement(set) : set;
}

function readPosix(reader: PatternReader): AsciiSet | undefined {
  const named = reader.match(/\[:(.*?):\]/sy);
  if (named === undefined) return undefined;
  const set = posixSet(named[1]!);
  if (set === undefined) throw new PatternFault(`invalid character class range: ${named[0]}`);
  return set;
}

function readRange(reader: PatternReader): AsciiSet {
  const start = reader.at;
  const low = readCharacter(reader);
  let high = low;
  if (reader.match(/-(?!\]|$)/y) !== undefined) high = readCharacter(reader);
  if (high < low) {
    throw new PatternFault(`invalid character class range: ${reader.text.slice(start, reader.at)}`);
  }
  return rangeSet(low, high);
}

function readCharacter(reader: PatternReader): number {
  return reader.sees("\\") ? reader.escape() : reader.character();
}
