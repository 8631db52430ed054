import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import { type Regex, Regexes, TooComplex, UNBOUNDED } from "./byte-regex.js";
import { GrammarMachine, type Part, UnheldGrammar } from "./grammar.js";
import { type GrammarBudget, OverBudget } from "./grammar-budget.js";
import { GrammarCursor } from "./grammar-cursor.js";
import { type JsonGrammar, jsonGrammar } from "./json-grammar.js";
import { JsonText, otherCodePoints, PlainLetters } from "./json-text.js";
import { LarkReader } from "./lark.js";
import { patternRegex, UnheldPattern } from "./pattern.js";
import { type Expression, partOfRules, repetition } from "./rules.js";
import { InvalidSchema } from "./schema-keywords.js";
import { type TokenBytes, TokenGrammar } from "./token-masks.js";

/** Bytes of the objects of a parsed format, for each character. */
const BYTES_PER_CHARACTER = 6;

/** Formats that a grammar holds. */
type GrammarFormat = Exclude<ResponseFormat, { type: "text" }>;

/** A format that was read. */
interface ReadFormat {
  readonly grammar: TokenGrammar;
  /** Names keywords of a schema that the grammar does not hold; undefined if it holds all. */
  readonly unheld: string | undefined;
}

/**
 * Reads a format, given as JSON.
 *
 * @param budget counts the work and the memory of the reading and of all masks
 * @throws OverBudget if it takes more than the budget; other errors that {@link reasonOf} words
 */
export function readFormat(
  json: string,
  budget: GrammarBudget,
  tokens: TokenBytes,
  endTokens: readonly number[],
): ReadFormat {
  budget.spend(json.length >> 4);
  budget.hold(BYTES_PER_CHARACTER * json.length);
  const { root, regexes, plainChars, unheld } = grammarOf(JSON.parse(json) as GrammarFormat, budget);
  const grammar = new TokenGrammar(new GrammarMachine(regexes, root), tokens, endTokens, plainChars);
  if (unheld.length === 0) return { grammar, unheld: undefined };
  return { grammar, unheld: `the grammar of a JSON schema cannot hold ${unheld.join(", ")}` };
}

function grammarOf(format: GrammarFormat, budget: GrammarBudget): JsonGrammar {
  if (format.type === "json_schema")
    return jsonGrammar(format.schema, format.strict !== false, new JsonText(new Regexes(budget)));
  if (format.type === "json_object")
    return jsonGrammar({ type: "object" }, false, new JsonText(new Regexes(budget)));
  const regexes = new Regexes(budget);
  const others = { regexes, plainChars: new Set<Regex>(), unheld: [] };
  switch (format.type) {
    case "regex": {
      const regex = patternRegex(format.pattern, regexes, new PlainLetters(regexes), true);
      if (!regexes.hasMatch(regex)) throw new UnheldGrammar("no text matches the pattern");
      return { root: { regex }, ...others };
    }
    case "choice":
      return { root: { regex: regexes.any(...format.texts.map((text) => regexes.text(text))) }, ...others };
    case "grammar":
      return { root: grammarOfText(format.grammar, regexes), ...others };
  }
}

/** Keywords of a schema that a grammar cannot hold. */
export class UnheldKeywords extends Error {}

/**
 * The text of the error for a format that cannot be read, or whose text cannot be continued. Other errors are thrown
 * again.
 */
export function faultOf(error: unknown, isBegun: boolean): string {
  if (error instanceof UnheldKeywords) return `cannot read response_format: ${error.message}`;
  const what = isBegun ? "continue the answer in its format" : "read the format of the answer";
  return `cannot ${what}: ${reasonOf(error)}`;
}

function reasonOf(error: unknown): string {
  if (error instanceof InvalidSchema || error instanceof UnheldGrammar) return error.message;
  if (error instanceof UnheldPattern) return `cannot hold a pattern with ${error.message}`;
  if (error instanceof TooComplex) return "it is too complex";
  if (error instanceof OverBudget)
    return `it is too complex: expected at most ${error.limit} ${error.kind}, got more`;
  if (error instanceof RangeError) return "it is nested too deeply";
  throw error;
}

/**
 * Reads a grammar as vLLM takes it: in EBNF with `::=`, as xgrammar and llama.cpp (GBNF) write it, from the rule `root`;
 * or in Lark's language, from the rule `start`.
 *
 * @throws UnheldGrammar for a grammar that cannot be read
 */
export function grammarOfText(text: string, regexes: Regexes): Part {
  if (text.includes("::=")) return partOfRules(new EbnfReader(text, regexes).read(), "root", regexes);
  return partOfRules(new LarkReader(text, regexes).read(), "start", regexes);
}

const SPACE = /(?:\s|#[^\n]*(?:\n|$))*/y;
const NAME = /[A-Za-z_][\w.-]*/y;
const DEFINITION = /[A-Za-z_][\w.-]*(?:\s|#[^\n]*(?:\n|$))*::=/y;
/** A range, not a hyphen at the end of a class. */
const RANGE = /-(?!\])/y;
const TIMES = /\{\s*(\d+)\s*(,?)\s*(\d*)\s*\}/y;
const ESCAPED = /\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([\s\S]))/y;
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  f: "\f",
  v: "\v",
  b: "\b",
  0: "\0",
};

class EbnfReader {
  readonly #cursor: GrammarCursor;
  readonly #letters: PlainLetters;

  constructor(
    text: string,
    private readonly regexes: Regexes,
  ) {
    this.#cursor = new GrammarCursor(text);
    this.#letters = new PlainLetters(regexes);
  }

  read(): Map<string, Expression> {
    const rules = new Map<string, Expression>();
    this.#cursor.take(SPACE);
    while (!this.#cursor.isAtEnd) {
      const name = this.#cursor.take(NAME)?.[0];
      this.#cursor.take(SPACE);
      if (name === undefined || !this.#cursor.skip("::="))
        throw this.#cursor.expected("a rule such as root ::= ...");
      if (rules.has(name)) throw new UnheldGrammar(`the rule ${name} is given twice`);
      rules.set(name, this.#choice());
    }
    return rules;
  }

  #choice(): Expression {
    const members = [this.#sequence()];
    while (this.#cursor.skip("|")) members.push(this.#sequence());
    return members.length === 1 ? members[0]! : { kind: "choice", members };
  }

  #sequence(): Expression {
    const members: Expression[] = [];
    this.#cursor.take(SPACE);
    while (!this.#cursor.isAtEnd && !"|)".includes(this.#cursor.next!) && !this.#cursor.looksAt(DEFINITION)) {
      members.push(this.#repeated());
      this.#cursor.take(SPACE);
    }
    return members.length === 1 ? members[0]! : { kind: "sequence", members };
  }

  #repeated(): Expression {
    let of = this.#element();
    for (;;) {
      this.#cursor.take(SPACE);
      const times = this.#cursor.take(TIMES);
      if (times !== undefined) {
        const [, min = "0", comma, max = ""] = times;
        of = repetition(of, +min, comma === "" ? +min : max === "" ? UNBOUNDED : +max);
      } else if (this.#cursor.skip("*")) of = { kind: "repeat", of, min: 0, max: UNBOUNDED };
      else if (this.#cursor.skip("+")) of = { kind: "repeat", of, min: 1, max: UNBOUNDED };
      else if (this.#cursor.skip("?")) of = { kind: "repeat", of, min: 0, max: 1 };
      else return of;
    }
  }

  #element(): Expression {
    this.regexes.budget.spend(2);
    if (this.#cursor.skip('"')) {
      let literal = "";
      while (!this.#cursor.skip('"')) literal += this.#character("a quotation mark");
      return { kind: "regex", regex: this.regexes.text(literal) };
    }
    if (this.#cursor.skip("[")) return this.#class();
    if (this.#cursor.skip(".")) return { kind: "regex", regex: this.#letters.chars(otherCodePoints([])) };
    if (this.#cursor.skip("(")) {
      if (this.#cursor.next === "=") throw new UnheldGrammar("it looks ahead with (=, which is not held");
      const inner = this.#choice();
      this.#cursor.take(SPACE);
      if (!this.#cursor.skip(")")) throw this.#cursor.expected("a closing parenthesis");
      return inner;
    }
    const name = this.#cursor.take(NAME)?.[0];
    if (name !== undefined) return { kind: "rule", name };
    throw this.#cursor.expected("a string, a class, a group or the name of a rule");
  }

  #class(): Expression {
    const isNegated = this.#cursor.skip("^");
    const points: [number, number][] = [];
    while (!this.#cursor.skip("]")) {
      const from = this.#character("a closing bracket").codePointAt(0)!;
      let to = from;
      if (this.#cursor.looksAt(RANGE)) {
        this.#cursor.at++;
        to = this.#character("a closing bracket").codePointAt(0)!;
      }
      if (to < from) throw this.#cursor.expected("a range from a lower to a higher character");
      points.push([from, to]);
    }
    return { kind: "regex", regex: this.#letters.chars(isNegated ? otherCodePoints(points) : points) };
  }

  #character(end: string): string {
    const escaped = this.#cursor.take(ESCAPED);
    if (escaped !== undefined) {
      const [, byte, short, long, other] = escaped;
      const code = byte ?? short ?? long;
      if (code !== undefined) return String.fromCodePoint(Math.min(Number.parseInt(code, 16), 0x10ffff));
      return SHORT_ESCAPES[other!] ?? other!;
    }
    const code = this.#cursor.text.codePointAt(this.#cursor.at);
    if (code === undefined || code === 10) throw this.#cursor.expected(end);
    const character = String.fromCodePoint(code);
    this.#cursor.at += character.length;
    return character;
  }
}
