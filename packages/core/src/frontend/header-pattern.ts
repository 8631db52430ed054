import { errorFor, isReservedParameter, type Parameters, type ParameterValue } from "@tritonjs/protocol";

/** Prefix that makes patterns case-insensitive by default. tritonserver puts it before each pattern. */
const PREFIX = "(?i)";

/**
 * Reads the pattern of headers that are forwarded to models. A string has the syntax of RE2, as for tritonserver.
 * Strings and expressions are case-insensitive. The pattern may match anywhere in the name of a header.
 *
 * @returns a stateless expression; undefined without a pattern, or with an empty one
 * @throws TritonError INVALID_ARG with RE2's reason for a string that is not a pattern.
 */
export function headerPattern(pattern: string | RegExp | undefined): RegExp | undefined {
  if (pattern === undefined || pattern === "") return undefined;
  if (typeof pattern !== "string")
    return new RegExp(pattern.source, `${pattern.flags.replace(/[giy]/g, "")}i`);
  try {
    return new RegExp(new Translator(PREFIX + pattern).translate());
  } catch (cause) {
    const { message } = cause as Error;
    throw errorFor("INVALID_OPTION", `Error parsing '${PREFIX}${pattern}': ${message}`, { cause });
  }
}

/**
 * Adds the headers with matching names to the parameters for the model, as strings under the names that the client
 * sent.
 *
 * @throws TritonError INVALID_ARG for a matching header with a reserved name.
 */
export function forwardHeaders(
  headers: Iterable<readonly [name: string, value: string]>,
  pattern: RegExp,
  parameters: Parameters,
): Parameters {
  const all: Record<string, ParameterValue> = Object.assign(Object.create(null), parameters);
  let count = 0;
  for (const [name, value] of headers) {
    if (!pattern.test(name)) continue;
    if (isReservedParameter(name)) {
      const text = `Header '${name}' is reserved for Triton usage and cannot be forwarded.`;
      throw errorFor("INVALID_PARAMETER", text);
    }
    all[name] = value;
    count++;
  }
  return count === 0 ? parameters : all;
}

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

class PatternFault extends Error {
  override readonly name = "PatternFault";
}

const MAX_CODE = 0x10ffff;

/** Escapes of characters by their letter. */
const LETTERS: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };

class PatternReader {
  at = 0;

  constructor(readonly text: string) {}

  get ended(): boolean {
    return this.at >= this.text.length;
  }

  sees(token: string): boolean {
    return this.text.startsWith(token, this.at);
  }

  /** Skips `token`. Returns false if the text does not continue with it. */
  skip(token: string): boolean {
    if (!this.sees(token)) return false;
    this.at += token.length;
    return true;
  }

  /** Skips the match of `expression` at this place. The expression must be sticky. */
  match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.at;
    const found = expression.exec(this.text);
    if (found === null) return undefined;
    this.at += found[0].length;
    return found;
  }

  character(): number {
    const code = this.text.codePointAt(this.at)!;
    this.at += code > 0xffff ? 2 : 1;
    return code;
  }

  escape(): number {
    const start = this.at;
    if (this.text.length === start + 1) throw new PatternFault("trailing \\");
    const octal = this.match(/\\(0[0-7]{0,2}|[1-7][0-7]{1,2})/y);
    if (octal !== undefined) return Number.parseInt(octal[1]!, 8);
    const hex = this.match(/\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/y);
    if (hex !== undefined) {
      const code = Number.parseInt(hex[1] ?? hex[2]!, 16);
      if (code <= MAX_CODE) return code;
    } else {
      const letter = this.match(/\\([afnrtv])/y);
      if (letter !== undefined) return LETTERS[letter[1]!]!;
      const plain = this.match(/\\([^\w\u0080-\uffff])/y);
      if (plain !== undefined) return plain[1]!.charCodeAt(0);
    }
    throw new PatternFault(
      `invalid escape sequence: ${this.text.slice(start, Math.max(this.at, start + 2))}`,
    );
  }
}

/** Reads a class in brackets. @param fold whether matching is case-insensitive */
function readClass(reader: PatternReader, fold: boolean): AsciiSet {
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
function readNamedSet(reader: PatternReader): AsciiSet | undefined {
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

/** POSIX classes, which are used inside brackets: `[[:alpha:]]`. */
const POSIX: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  ascii: /[\s\S]/,
  blank: /[\t ]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the class is these characters.
  cntrl: /[\x00-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[\t\n\v\f\r ]/,
  upper: /[A-Z]/,
  word: /[0-9A-Za-z_]/,
  xdigit: /[0-9A-Fa-f]/,
};

/** Perl classes by their letter. The capital letter is the complement. `\s` does not include the vertical tab. */
const PERL: Readonly<Record<string, RegExp>> = { d: /[0-9]/, s: /[\t\n\f\r ]/, w: /[0-9A-Za-z_]/ };

/** The POSIX class of a name such as `alpha` or `^alpha`; undefined for an unknown one. */
function posixSet(name: string): AsciiSet | undefined {
  return signed(name, (plain) => (Object.hasOwn(POSIX, plain) ? matching(POSIX[plain]!) : undefined));
}

/** The Perl class of a letter; undefined for a letter without one. */
function perlSet(letter: string): AsciiSet | undefined {
  const lower = letter.toLowerCase();
  if (!Object.hasOwn(PERL, lower)) return undefined;
  const set = matching(PERL[lower]!);
  return letter === lower ? set : complement(set);
}

/** The characters of a Unicode category or script, such as `L`, `Lu` or `Greek`; undefined for an unknown one. */
function unicodeSet(name: string): AsciiSet | undefined {
  return signed(name, (plain) => {
    if (!/^\w+$/.test(plain)) return undefined;
    for (const property of [`General_Category=${plain}`, `Script=${plain}`, plain]) {
      try {
        return matching(new RegExp(`\\p{${property}}`, "u"));
      } catch {
        // The name is not a property of this kind.
      }
    }
    return undefined;
  });
}

function signed(name: string, find: (plain: string) => AsciiSet | undefined): AsciiSet | undefined {
  if (!name.startsWith("^")) return find(name);
  const set = find(name.slice(1));
  return set === undefined ? undefined : complement(set);
}

/** A set of characters of header names, which are ASCII. Element `code` is true if the character is in the set. */
type AsciiSet = readonly boolean[];

const SIZE = 128;
const CASE_BIT = 0x20;

function setOf(accepts: (code: number) => boolean): AsciiSet {
  return Array.from({ length: SIZE }, (_, code) => accepts(code));
}

function rangeSet(low: number, high: number): AsciiSet {
  return setOf((code) => code >= low && code <= high);
}

function union(...sets: readonly AsciiSet[]): AsciiSet {
  return setOf((code) => sets.some((set) => set[code]));
}

function complement(set: AsciiSet): AsciiSet {
  return setOf((code) => !set[code]);
}

/** The set with the other case of each of its letters. */
function folded(set: AsciiSet): AsciiSet {
  return setOf((code) => set[code]! || (isLetter(code) && set[code ^ CASE_BIT]!));
}

/** The set as a character class of a JavaScript expression. */
function classText(set: AsciiSet): string {
  const members = set.flatMap((isIn, code) => (isIn ? [`\\x${code.toString(16).padStart(2, "0")}`] : []));
  return `[${members.join("")}]`;
}

/** The set that an expression for single characters matches. */
function matching(expression: RegExp): AsciiSet {
  return setOf((code) => expression.test(String.fromCharCode(code)));
}

function isLetter(code: number): boolean {
  const upper = code & ~CASE_BIT;
  return upper >= 0x41 && upper <= 0x5a;
}
