import { classText, folded, rangeSet } from "./ascii-set.js";
import { PatternFault, PatternReader } from "./pattern-reader.js";
import { readClass, readNamedSet } from "./read-class.js";

const MAX_REPEAT = 1000;
const ANY = "[^]";

/** Assertions without a width. Each gets a group of its own, because RE2 allows repeating them. */
const ASSERTIONS: readonly (readonly [token: string, text: string])[] = [
  ["^", "(?:^)"],
  ["$", "(?:$)"],
  ["\\A", "(?:^)"],
  ["\\z", "(?:$)"],
  ["\\b", "(?:\\b)"],
  ["\\B", "(?:\\B)"],
];

/**
 * Translates a pattern of RE2 to the source of a JavaScript expression without flags. It serves names of headers: ASCII
 * without line breaks. There the flags `m`, `s` and `U` have no effect, and `i` is written out.
 *
 * @throws PatternFault for a pattern that RE2 refuses.
 */
export function translatePattern(pattern: string): string {
  return new Translator(pattern).translate();
}

class Translator {
  readonly #reader: PatternReader;
  /** For each open group, whether matching was case-insensitive before it. */
  readonly #open: boolean[] = [];
  readonly #groups = new Set<string>();
  #source = "";
  #fold = false;
  /** Whether the last item can be repeated by an operator. */
  #repeatable = false;
  /** Index at which the preceding repetition begins. */
  #repeatedAt: number | undefined;

  constructor(pattern: string) {
    this.#reader = new PatternReader(pattern);
  }

  translate(): string {
    const reader = this.#reader;
    while (!reader.ended) {
      if (reader.sees("(")) this.#openGroup();
      else if (reader.skip(")")) this.#closeGroup();
      else if (reader.skip("|")) this.#separator("|");
      else if (!this.#repetition()) this.#atom(this.#readAtom());
    }
    if (this.#open.length > 0) throw new PatternFault(`missing ): ${reader.text}`);
    return this.#source;
  }

  #readAtom(): string {
    const reader = this.#reader;
    if (reader.skip(".") || reader.skip("\\C")) return ANY;
    const assertion = ASSERTIONS.find(([token]) => reader.skip(token));
    if (assertion !== undefined) return assertion[1];
    if (reader.sees("[")) return classText(readClass(reader, this.#fold));
    const quoted = reader.match(/\\Q(.*?)(?:\\E|$)/sy);
    if (quoted !== undefined)
      return [...quoted[1]!].map((one) => this.#literal(one.codePointAt(0)!)).join("");
    const named = readNamedSet(reader);
    if (named !== undefined) return classText(this.#fold ? folded(named) : named);
    return this.#literal(reader.sees("\\") ? reader.escape() : reader.character());
  }

  #literal(code: number): string {
    const set = rangeSet(code, code);
    return classText(this.#fold ? folded(set) : set);
  }

  #atom(text: string): void {
    this.#source += text;
    // An empty quotation leaves the item before it repeatable.
    if (text === "") return;
    this.#repeatable = true;
    this.#repeatedAt = undefined;
  }

  /** Adds text that cannot be repeated. */
  #separator(text: string): void {
    this.#source += text;
    this.#repeatable = false;
    this.#repeatedAt = undefined;
  }

  #repetition(): boolean {
    const reader = this.#reader;
    const start = reader.at;
    const found = reader.match(/[*+?]|\{(0|[1-9]\d*)(?:(,)(|0|[1-9]\d*))?\}/y);
    if (found === undefined) return false;
    const [operator, least, comma, most] = found;
    // Greediness does not change whether the pattern matches.
    reader.skip("?");
    const upTo = comma === undefined ? least : most;
    if (Number(least ?? 0) > MAX_REPEAT || Number(upTo ?? 0) > MAX_REPEAT || isBackwards(least, upTo)) {
      throw new PatternFault(`invalid repetition size: ${operator}`);
    }
    if (this.#repeatedAt !== undefined) {
      throw new PatternFault(`bad repetition operator: ${reader.text.slice(this.#repeatedAt, reader.at)}`);
    }
    if (!this.#repeatable) throw new PatternFault(`no argument for repetition operator: ${operator}`);
    this.#source += operator;
    this.#repeatedAt = start;
    return true;
  }

  #openGroup(): void {
    const reader = this.#reader;
    const at = reader.at;
    if (reader.match(/\((?!\?)/y) !== undefined || this.#namesGroup()) {
      this.#enter(this.#fold);
      return;
    }
    const flags = reader.match(/\(\?([imsU]*)(?:-([imsU]+))?([:)])/y);
    if (flags === undefined) {
      throw new PatternFault(`invalid perl operator: ${reader.text.slice(at, at + 3)}`);
    }
    const [, on = "", off = "", end] = flags;
    const fold = off.includes("i") ? false : on.includes("i") || this.#fold;
    if (end === ":") this.#enter(fold);
    else {
      this.#fold = fold;
      this.#separator("");
    }
  }

  /** Reads the start of a named group. */
  #namesGroup(): boolean {
    const reader = this.#reader;
    const name = reader.match(/\(\?P?<(\w+)>/y)?.[1];
    if (name === undefined) {
      if (reader.match(/\(\?(?:P|<(?![=!]))/y) === undefined) return false;
      throw new PatternFault(`invalid named capture group: ${reader.text.slice(reader.at - "(?P".length)}`);
    }
    if (this.#groups.has(name)) throw new PatternFault(`duplicate capture group name: ${name}`);
    this.#groups.add(name);
    return true;
  }

  #enter(fold: boolean): void {
    this.#open.push(this.#fold);
    this.#fold = fold;
    this.#separator("(?:");
  }

  #closeGroup(): void {
    const fold = this.#open.pop();
    if (fold === undefined) throw new PatternFault(`unexpected ): ${this.#reader.text}`);
    this.#fold = fold;
    this.#atom(")");
  }
}

function isBackwards(least: string | undefined, most: string | undefined): boolean {
  return least !== undefined && most !== undefined && most !== "" && Number(most) < Number(least);
}
