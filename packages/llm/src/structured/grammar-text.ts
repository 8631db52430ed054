import { type Regexes, UNBOUNDED } from "./byte-regex.js";
import { type Part, UnheldGrammar } from "./grammar.js";
import { otherCodePoints, PlainLetters } from "./json-text.js";
import { LarkReader } from "./lark.js";
import { type Expression, partOfRules } from "./rules.js";

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

const SPACE = /(?:\s|#[^\n]*)*/y;
const NAME = /[A-Za-z_][\w.-]*/y;
const DEFINITION = /[A-Za-z_][\w.-]*(?:\s|#[^\n]*)*::=/y;
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
  #at = 0;
  readonly #letters: PlainLetters;

  constructor(
    private readonly text: string,
    private readonly regexes: Regexes,
  ) {
    this.#letters = new PlainLetters(regexes);
  }

  read(): Map<string, Expression> {
    const rules = new Map<string, Expression>();
    this.#take(SPACE);
    while (this.#at < this.text.length) {
      const name = this.#take(NAME)?.[0];
      this.#take(SPACE);
      if (name === undefined || !this.#skip("::=")) throw this.#expected("a rule such as root ::= ...");
      if (rules.has(name)) throw new UnheldGrammar(`the rule ${name} is given twice`);
      rules.set(name, this.#choice());
    }
    return rules;
  }

  #choice(): Expression {
    const members = [this.#sequence()];
    while (this.#skip("|")) members.push(this.#sequence());
    return members.length === 1 ? members[0]! : { kind: "choice", members };
  }

  #sequence(): Expression {
    const members: Expression[] = [];
    this.#take(SPACE);
    while (
      this.#at < this.text.length &&
      !"|)".includes(this.text[this.#at]!) &&
      !this.#looksAt(DEFINITION)
    ) {
      members.push(this.#repeated());
      this.#take(SPACE);
    }
    return members.length === 1 ? members[0]! : { kind: "sequence", members };
  }

  #repeated(): Expression {
    let of = this.#element();
    for (;;) {
      this.#take(SPACE);
      const times = this.#take(TIMES);
      if (times !== undefined) {
        const [, min = "0", comma, max = ""] = times;
        of = { kind: "repeat", of, min: +min, max: comma === "" ? +min : max === "" ? UNBOUNDED : +max };
      } else if (this.#skip("*")) of = { kind: "repeat", of, min: 0, max: UNBOUNDED };
      else if (this.#skip("+")) of = { kind: "repeat", of, min: 1, max: UNBOUNDED };
      else if (this.#skip("?")) of = { kind: "repeat", of, min: 0, max: 1 };
      else return of;
    }
  }

  #element(): Expression {
    if (this.#skip('"')) {
      let literal = "";
      while (!this.#skip('"')) literal += this.#character("a quotation mark");
      return { kind: "regex", regex: this.regexes.text(literal) };
    }
    if (this.#skip("[")) return this.#class();
    if (this.#skip(".")) return { kind: "regex", regex: this.#letters.chars(otherCodePoints([])) };
    if (this.#skip("(")) {
      if (this.text[this.#at] === "=") throw new UnheldGrammar("it looks ahead with (=, which is not held");
      const inner = this.#choice();
      this.#take(SPACE);
      if (!this.#skip(")")) throw this.#expected("a closing parenthesis");
      return inner;
    }
    const name = this.#take(NAME)?.[0];
    if (name !== undefined) return { kind: "rule", name };
    throw this.#expected("a string, a class, a group or the name of a rule");
  }

  #class(): Expression {
    const isNegated = this.#skip("^");
    const points: [number, number][] = [];
    while (!this.#skip("]")) {
      const from = this.#character("a closing bracket").codePointAt(0)!;
      let to = from;
      if (this.text[this.#at] === "-" && this.text[this.#at + 1] !== "]") {
        this.#at++;
        to = this.#character("a closing bracket").codePointAt(0)!;
      }
      if (to < from) throw this.#expected("a range from a lower to a higher character");
      points.push([from, to]);
    }
    return { kind: "regex", regex: this.#letters.chars(isNegated ? otherCodePoints(points) : points) };
  }

  #character(end: string): string {
    const escaped = this.#take(ESCAPED);
    if (escaped !== undefined) {
      const [, byte, short, long, other] = escaped;
      const code = byte ?? short ?? long;
      if (code !== undefined) return String.fromCodePoint(Math.min(Number.parseInt(code, 16), 0x10ffff));
      return SHORT_ESCAPES[other!] ?? other!;
    }
    const code = this.text.codePointAt(this.#at);
    if (code === undefined || code === 10) throw this.#expected(end);
    const character = String.fromCodePoint(code);
    this.#at += character.length;
    return character;
  }

  #skip(text: string): boolean {
    if (!this.text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #looksAt(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.text);
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text) ?? undefined;
    if (found !== undefined) this.#at += found[0].length;
    return found;
  }

  #expected(what: string): UnheldGrammar {
    const line = this.text.slice(0, this.#at).split("\n").length;
    const got = this.text.slice(this.#at, this.#at + 20).split("\n")[0];
    return new UnheldGrammar(
      `line ${line} of the grammar: expected ${what}, got ${got === "" ? "its end" : JSON.stringify(got)}`,
    );
  }
}
