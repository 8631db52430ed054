import type { parse } from "@huggingface/jinja";

type Tokens = Parameters<typeof parse>[0];
type TokenType = Tokens[number]["type"];

/** Marks and operators of expressions. Of two that fit, the longer one counts. */
const MARK = /\{[{%]|\}\}|%\}|[<>=!]=|\*\*|\/\/|[-+~*/%=<>(){}[\],.:|]/y;

const MARK_TYPES: Readonly<Record<string, TokenType>> = {
  "{%": "OpenStatement",
  "%}": "CloseStatement",
  "{{": "OpenExpression",
  "}}": "CloseExpression",
  "(": "OpenParen",
  ")": "CloseParen",
  "{": "OpenCurlyBracket",
  "}": "CloseCurlyBracket",
  "[": "OpenSquareBracket",
  "]": "CloseSquareBracket",
  ",": "Comma",
  ".": "Dot",
  ":": "Colon",
  "|": "Pipe",
  "<": "ComparisonBinaryOperator",
  ">": "ComparisonBinaryOperator",
  "+": "AdditiveBinaryOperator",
  "-": "AdditiveBinaryOperator",
  "~": "AdditiveBinaryOperator",
  "**": "ExponentiationBinaryOperator",
  "*": "MultiplicativeBinaryOperator",
  "/": "MultiplicativeBinaryOperator",
  "//": "MultiplicativeBinaryOperator",
  "%": "MultiplicativeBinaryOperator",
  "=": "Equals",
};

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  "'": "'",
  '"': '"',
  "\\": "\\",
};

/** Tokens behind which `-` and `+` join two values. Behind any other they are signs. */
const VALUES: ReadonlySet<TokenType> = new Set<TokenType>([
  "Identifier",
  "NumericLiteral",
  "StringLiteral",
  "CloseParen",
  "CloseSquareBracket",
]);

const TAG = /\{[{%#]/g;
const RAW = /\{%([-+]?)\s*raw\s*([-+]?)%\}/y;
const END_RAW = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g;
/** Tags around texts that a model generates, which only training reads. */
const GENERATION = /\{%[-+]?\s*(?:end)?generation\s*([-+]?)%\}/y;
const SPACE = /\s*/y;
const CLOSE = /[-+]%\}|-\}\}/y;
const WORD = /\w+/y;
const DIGITS = /\d+/y;
const FRACTION = /\.\d+/y;
const STRING_PARTS = { "'": /[^\\']*/y, '"': /[^\\"]*/y } as const;
const HEX = /[0-9a-f]*/iy;

/**
 * Cuts a template into the tokens that the parser of `@huggingface/jinja` reads, with the settings of transformers:
 * `trim_blocks` and `lstrip_blocks`. It does this in linear time and knows `{% raw %}`, unlike the library's own function.
 *
 * @throws SyntaxError for a tag, text or comment that does not end, and for characters of other languages
 */
export function templateTokens(given: string): Tokens {
  // As jinja2 does by default.
  const source = given.endsWith("\n") ? given.slice(0, -1) : given;
  const tokens: { value: string; type: TokenType }[] = [];
  let at = 0;
  const add = (value: string, type: TokenType) => void tokens.push({ value, type });
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const addText = (text: string) => {
    if (text !== "") add(text, "Text");
  };
  /** Goes on behind the end of a tag, which removes white space or one line break. */
  const pass = (end: string, isExpression = false) => {
    if (end === "-") take(SPACE);
    else if (end !== "+" && !isExpression && source[at] === "\n") at++;
  };

  while (at < source.length) {
    const begin = at;
    TAG.lastIndex = begin;
    const tag = TAG.exec(source)?.index ?? source.length;
    const sign = source[tag + 2];
    const isExpression = source[tag + 1] === "{";
    let end = tag;
    if (tag < source.length && !isExpression && sign !== "+" && sign !== "-") {
      while (end > begin && (source[end - 1] === " " || source[end - 1] === "\t")) end--;
      if (end > 0 && source[end - 1] !== "\n") end = tag;
    }
    const text = source.slice(begin, end);
    addText(sign === "-" && tag < source.length ? text.trimEnd() : text);
    at = tag;
    if (tag === source.length) break;
    if (source[tag + 1] === "#") {
      const close = source.indexOf("#}", tag + 2);
      if (close < 0) throw new SyntaxError("a comment that does not end");
      at = close + 2;
      const last = source[close - 1]!;
      pass(close > tag + 2 ? last : "");
      continue;
    }
    const raw = take(RAW);
    if (raw !== null) {
      END_RAW.lastIndex = at;
      const close = END_RAW.exec(source);
      if (close === null) throw new SyntaxError("a block of raw text that does not end");
      addText(rawText(source.slice(at, close.index), raw[2] === "-", close[1]!));
      at = END_RAW.lastIndex;
      pass(close[2]!);
      continue;
    }
    const generation = take(GENERATION);
    if (generation !== null) {
      pass(generation[1]!);
      continue;
    }
    add(isExpression ? "{{" : "{%", isExpression ? "OpenExpression" : "OpenStatement");
    at += sign === "-" || (sign === "+" && !isExpression) ? 3 : 2;
    tagTokens();
  }
  return tokens as Tokens;

  /** Reads a tag up to its end. */
  function tagTokens(): void {
    let depth = 0;
    for (;;) {
      take(SPACE);
      const one = source[at];
      if (one === undefined) throw new SyntaxError("a tag that does not end");
      const last = tokens.at(-1)!.type;
      const closed = take(CLOSE)?.[0];
      if (closed !== undefined) {
        const isExpression = closed === "-}}";
        add(closed.slice(1), isExpression ? "CloseExpression" : "CloseStatement");
        pass(closed.charAt(0), isExpression);
        return;
      }
      if ((one === "-" || one === "+") && !VALUES.has(last)) {
        at++;
        const number = takeNumber(false);
        add(one + number, number === "" ? "UnaryOperator" : "NumericLiteral");
        continue;
      }
      const mark = take(MARK)?.[0];
      if (mark !== undefined) {
        // The first of two brackets that close may end a dict.
        const text = mark === "}}" && depth > 0 ? "}" : mark;
        at -= mark.length - text.length;
        const type = MARK_TYPES[text] ?? "ComparisonBinaryOperator";
        add(text, type);
        if (type === "OpenCurlyBracket") depth++;
        if (type === "CloseCurlyBracket") depth--;
        if (type === "CloseStatement") pass("");
        if (type === "CloseStatement" || type === "CloseExpression") return;
        continue;
      }
      if (one === "'" || one === '"') {
        add(takeString(one), "StringLiteral");
        continue;
      }
      const number = takeNumber(last === "Dot");
      if (number !== "") {
        add(number, "NumericLiteral");
        continue;
      }
      const word = take(WORD)?.[0];
      if (word === undefined) throw new SyntaxError(`unexpected character: ${one}`);
      add(word, "Identifier");
    }
  }

  function takeNumber(isIndex: boolean): string {
    const whole = take(DIGITS)?.[0];
    if (whole === undefined) return "";
    return isIndex ? whole : whole + (take(FRACTION)?.[0] ?? "");
  }

  function takeString(quote: "'" | '"'): string {
    at++;
    let text = "";
    for (;;) {
      text += take(STRING_PARTS[quote])?.[0] ?? "";
      const one = source[at++];
      if (one === quote) return text;
      if (one === undefined) throw new SyntaxError("a text that does not end");
      text += escaped();
    }
  }

  function escaped(): string {
    const letter = source[at++] ?? "";
    if (letter !== "x" && letter !== "u") {
      if (Object.hasOwn(ESCAPES, letter)) return ESCAPES[letter]!;
      throw new SyntaxError(`unexpected escaped character: ${letter}`);
    }
    const length = letter === "x" ? 2 : 4;
    const hex = source.slice(at, at + length);
    HEX.lastIndex = 0;
    if (HEX.exec(hex)![0].length !== length)
      throw new SyntaxError(`expected ${length} hexadecimal digits, got ${hex}`);
    at += length;
    return String.fromCharCode(Number.parseInt(hex, 16));
  }
}

/** @param end sign in the tag that ends the text, which removes the spaces before it in its line */
function rawText(raw: string, trimsStart: boolean, end: string): string {
  const text = trimsStart ? raw.trimStart() : raw;
  if (end === "-") return text.trimEnd();
  return end === "+" ? text : text.replace(/(^|\n)[ \t]*$/, "$1");
}
