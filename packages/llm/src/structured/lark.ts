import { type Regex, type Regexes, UNBOUNDED } from "./byte-regex.js";
import { UnheldGrammar } from "./grammar.js";
import { GrammarCursor } from "./grammar-cursor.js";
import { PlainLetters } from "./json-text.js";
import { patternRegex, UnheldPattern } from "./pattern.js";
import { type Expression, repetition } from "./rules.js";

/** Terminals of `common`, as Lark's library has them, as patterns of ECMAScript. */
const COMMON: Readonly<Record<string, string>> = {
  DIGIT: "[0-9]",
  HEXDIGIT: "[a-fA-F0-9]",
  INT: "[0-9]+",
  SIGNED_INT: "[+-]?[0-9]+",
  DECIMAL: "[0-9]+\\.[0-9]*|\\.[0-9]+",
  FLOAT: "[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
  SIGNED_FLOAT: "[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
  NUMBER: "[0-9]+(?:[eE][+-]?[0-9]+)?|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
  SIGNED_NUMBER: "[+-]?(?:[0-9]+(?:[eE][+-]?[0-9]+)?|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
  ESCAPED_STRING: '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER: "[A-Za-z]",
  WORD: "[A-Za-z]+",
  CNAME: "[_A-Za-z][_A-Za-z0-9]*",
  WS_INLINE: "[ \\t]+",
  WS: "[ \\t\\f\\r\\n]+",
  CR: "\\r",
  LF: "\\n",
  NEWLINE: "(?:\\r?\\n)+",
  SH_COMMENT: "#[^\\n]*",
  CPP_COMMENT: "//[^\\n]*",
  SQL_COMMENT: "--[^\\n]*",
};

const SPACE = /(?:[ \t\r\f]|\/\/[^\n]*|#[^\n]*|\n\s*(?=\|))*/y;
const BLANK = /(?:\s|\/\/[^\n]*|#[^\n]*)*/y;
const HEAD = /([?!]*)([a-z_A-Z][\w]*)(?:\.-?\d+)?\s*:(?!:)/y;
const NAME = /[a-z_A-Z]\w*/y;
const STRING = /"((?:[^"\\\n]|\\.)*)"(i?)/y;
const PATTERN = /\/((?:[^/\\\n]|\\.)+)\/([imslux]*)/y;
const TIMES = /~\s*(\d+)(?:\s*\.\.\s*(\d+))?/y;
const ALIAS = /->\s*\w+/y;

/** Reads the language of Lark: rules in lower case, terminals in upper case. */
export class LarkReader {
  readonly #cursor: GrammarCursor;
  readonly #rules = new Map<string, Expression>();
  readonly #ignored: Expression[] = [];

  constructor(
    text: string,
    private readonly regexes: Regexes,
  ) {
    this.#cursor = new GrammarCursor(text);
  }

  read(): Map<string, Expression> {
    this.#cursor.take(BLANK);
    while (!this.#cursor.isAtEnd) {
      if (this.#cursor.skip("%")) this.#directive();
      else {
        const name = this.#cursor.take(HEAD)?.[2];
        if (name === undefined) throw this.#cursor.expected("a rule such as start: ...");
        if (this.#rules.has(name)) throw new UnheldGrammar(`the rule ${name} is given twice`);
        this.#rules.set(name, this.#choice());
      }
      this.#cursor.take(BLANK);
    }
    return this.#ignored.length === 0 ? this.#rules : this.#withIgnored();
  }

  #directive(): void {
    const word = this.#cursor.take(NAME)?.[0];
    this.#cursor.take(SPACE);
    if (word === "ignore") {
      this.#ignored.push(this.#choice());
      return;
    }
    const library = word === "import" ? this.#cursor.take(NAME)?.[0] : undefined;
    if (library !== "common" || !this.#cursor.skip("."))
      throw this.#cursor.expected("%ignore, or %import of common");
    const name = this.#cursor.take(NAME)?.[0] ?? "";
    this.#cursor.take(SPACE);
    const hasAlias = this.#cursor.skip("->");
    this.#cursor.take(SPACE);
    const alias = hasAlias ? this.#cursor.take(NAME)?.[0] : name;
    const pattern = Object.hasOwn(COMMON, name) ? COMMON[name] : undefined;
    if (pattern === undefined || alias === undefined) {
      throw new UnheldGrammar(`expected a terminal of common, such as WS or NUMBER, got ${name}`);
    }
    this.#rules.set(alias, { kind: "regex", regex: this.#pattern(pattern) });
  }

  #choice(): Expression {
    const members = [this.#sequence()];
    for (this.#cursor.take(SPACE); this.#cursor.skip("|"); this.#cursor.take(SPACE))
      members.push(this.#sequence());
    return members.length === 1 ? members[0]! : { kind: "choice", members };
  }

  #sequence(): Expression {
    const members: Expression[] = [];
    for (
      this.#cursor.take(SPACE);
      !this.#cursor.isAtEnd && !"|)]\n".includes(this.#cursor.next!);
      this.#cursor.take(SPACE)
    ) {
      if (this.#cursor.take(ALIAS) === undefined) members.push(this.#repeated());
    }
    return members.length === 1 ? members[0]! : { kind: "sequence", members };
  }

  #repeated(): Expression {
    const of = this.#element();
    if (this.#cursor.skip("*")) return { kind: "repeat", of, min: 0, max: UNBOUNDED };
    if (this.#cursor.skip("+")) return { kind: "repeat", of, min: 1, max: UNBOUNDED };
    if (this.#cursor.skip("?")) return { kind: "repeat", of, min: 0, max: 1 };
    this.#cursor.take(SPACE);
    const times = this.#cursor.take(TIMES);
    return times === undefined ? of : repetition(of, +times[1]!, +(times[2] ?? times[1]!));
  }

  #element(): Expression {
    this.regexes.budget.spend(2);
    const string = this.#cursor.take(STRING);
    if (string !== undefined) {
      const from = unescaped(string[1]!);
      if (!this.#cursor.skip("..")) return { kind: "regex", regex: this.#literal(from, string[2] === "i") };
      const to = unescaped(this.#cursor.take(STRING)?.[1] ?? "");
      const range = [from.codePointAt(0), to.codePointAt(0)] as const;
      if (range[0] === undefined || range[1] === undefined)
        throw this.#cursor.expected("a range of two characters");
      return { kind: "regex", regex: new PlainLetters(this.regexes).chars([[range[0], range[1]]]) };
    }
    const pattern = this.#cursor.take(PATTERN);
    if (pattern !== undefined) {
      if (/[imx]/.test(pattern[2]!))
        throw new UnheldGrammar(`a pattern with the flags ${pattern[2]} is not held`);
      const dotAll = pattern[2]!.includes("s");
      return {
        kind: "regex",
        regex: this.#pattern(
          dotAll ? pattern[1]!.replaceAll(/\\.|\./g, (one) => (one === "." ? "[^]" : one)) : pattern[1]!,
        ),
      };
    }
    const close = this.#cursor.skip("(") ? ")" : this.#cursor.skip("[") ? "]" : undefined;
    if (close !== undefined) {
      const inner = this.#choice();
      this.#cursor.take(SPACE);
      if (!this.#cursor.skip(close)) throw this.#cursor.expected(`a closing ${close}`);
      return close === ")" ? inner : { kind: "repeat", of: inner, min: 0, max: 1 };
    }
    const name = this.#cursor.take(NAME)?.[0];
    if (name !== undefined) return { kind: "rule", name };
    throw this.#cursor.expected("a string, a pattern, a group or a name");
  }

  #pattern(pattern: string): Regex {
    try {
      return patternRegex(pattern.replaceAll("\\/", "/"), this.regexes, new PlainLetters(this.regexes), true);
    } catch (error) {
      if (error instanceof UnheldPattern)
        throw new UnheldGrammar(`cannot hold a pattern with ${error.message}`);
      throw error;
    }
  }

  #literal(text: string, isCaseInsensitive: boolean): Regex {
    if (!isCaseInsensitive) return this.regexes.text(text);
    const either = (char: string) =>
      this.regexes.any(this.regexes.text(char.toLowerCase()), this.regexes.text(char.toUpperCase()));
    return this.regexes.sequence(...[...text].map(either));
  }

  /** The rules with what is ignored after each terminal, and before the first one. */
  #withIgnored(): Map<string, Expression> {
    const gap: Expression = {
      kind: "repeat",
      of: { kind: "choice", members: this.#ignored },
      min: 0,
      max: UNBOUNDED,
    };
    const spaced = (of: Expression): Expression => {
      const isTerminal = of.kind === "regex" || (of.kind === "rule" && isTerminalName(of.name));
      if (isTerminal) return { kind: "sequence", members: [of, gap] };
      if (of.kind === "sequence" || of.kind === "choice") return { ...of, members: of.members.map(spaced) };
      return of.kind === "repeat" ? { ...of, of: spaced(of.of) } : of;
    };
    const rules = new Map(
      [...this.#rules].map(([name, of]) => [name, isTerminalName(name) ? of : spaced(of)] as const),
    );
    const start = rules.get("start");
    if (start === undefined) return rules;
    return rules.set("start", { kind: "sequence", members: [gap, start] });
  }
}

function isTerminalName(name: string): boolean {
  return name === name.toUpperCase();
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", f: "\f" };

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))/g, (_, byte, code, other: string) =>
    byte !== undefined || code !== undefined
      ? String.fromCharCode(Number.parseInt(byte ?? code, 16))
      : (ESCAPES[other] ?? other),
  );
}
