/** Thrown to leave the reader at the first place where it cannot continue. */
export class Unreadable extends Error {}

/** Reads tokens one after the other, and reports unexpected ones with protobuf's texts. */
export class TokenReader {
  readonly path: (string | number)[] = [];
  readonly #tokenizer: Tokenizer;

  /** @param text the bytes of the text, one character each */
  constructor(text: string) {
    this.#tokenizer = new Tokenizer(text);
    this.#tokenizer.next();
  }

  get errors(): readonly TextError[] {
    return this.#tokenizer.errors;
  }

  /** Reports `text` at the current token and throws. */
  fail(text: string): never {
    const { line, column } = this.#tokenizer.current;
    this.#tokenizer.errors.push({ line, column, text, field: shownPath(this.path) });
    throw new Unreadable();
  }

  isAt(kind: TokenKind): boolean {
    return this.#tokenizer.current.kind === kind;
  }

  looksAt(text: string): boolean {
    return this.#tokenizer.current.text === text;
  }

  get shown(): string {
    return shown(this.#tokenizer.current.text);
  }

  tryTake(text: string): boolean {
    if (!this.looksAt(text)) return false;
    this.#tokenizer.next();
    return true;
  }

  take(text: string): void {
    if (!this.tryTake(text)) this.fail(`Expected "${text}", found "${this.shown}".`);
  }

  takeIdentifier(): string {
    if (!this.isAt("identifier")) this.fail(`Expected identifier, got: ${this.shown}`);
    return this.#takeText();
  }

  /** Reads one string, which may be written as several in a row. */
  takeString(): string {
    if (!this.isAt("string")) this.fail(`Expected string, got: ${this.shown}`);
    const parts: string[] = [];
    while (this.isAt("string")) parts.push(unescapeLiteral(this.#takeText()));
    return Buffer.from(parts.join(""), "latin1").toString("utf8");
  }

  /** Reads an integer in [0, max], decimal, hexadecimal or octal. */
  takeUnsigned(max: bigint): bigint {
    if (!this.isAt("integer")) this.fail(`Expected integer, got: ${this.shown}`);
    const value = parseInteger(this.#tokenizer.current.text);
    if (value === undefined || value > max) this.fail(`Integer out of range (${this.shown})`);
    this.#tokenizer.next();
    return value;
  }

  /** Reads an integer in [-max - 1, max]. */
  takeSigned(max: bigint): bigint {
    return this.tryTake("-") ? -this.takeUnsigned(max + 1n) : this.takeUnsigned(max);
  }

  takeDouble(): number {
    const sign = this.tryTake("-") ? -1 : 1;
    if (this.isAt("integer")) {
      if (/^0[0-7xX]/.test(this.#tokenizer.current.text)) {
        this.fail(`Expect a decimal number, got: ${this.shown}`);
      }
      return sign * Number(this.#takeText());
    }
    if (this.isAt("float")) return sign * Number.parseFloat(this.#takeText());
    const word = this.shown.toLowerCase();
    if (this.isAt("identifier")) {
      const value =
        word === "nan" ? Number.NaN : word === "inf" || word === "infinity" ? Infinity : undefined;
      if (value === undefined) this.fail(`Expected double, got: ${word}`);
      this.#tokenizer.next();
      return sign * value;
    }
    return this.fail(`Expected double, got: ${this.shown}`);
  }

  #takeText(): string {
    const { text } = this.#tokenizer.current;
    this.#tokenizer.next();
    return text;
  }
}

/** Formats names and list indices as `input[0].dims`. */
function shownPath(path: readonly (string | number)[]): string {
  return path
    .map((part, i) => (typeof part === "number" ? `[${part}]` : i === 0 ? part : `.${part}`))
    .join("");
}

/** Longest number that is parsed, in digits. More digits exceed every range. */
const MAX_DIGITS = 64;
const MAX_SHOWN = 200;

function parseInteger(text: string): bigint | undefined {
  const digits = text.replace(/^0+(?=[0-9])/, "0");
  if (digits.length > MAX_DIGITS) return undefined;
  if (/^0[xX]$/.test(digits)) return 0n;
  if (/^0[xX]/.test(digits)) return BigInt(digits);
  if (/^0[0-7]+$/.test(digits)) return BigInt(`0o${digits.slice(1)}`);
  return /^(0|[1-9][0-9]*)$/.test(digits) ? BigInt(digits) : undefined;
}

function shown(bytes: string): string {
  const text = Buffer.from(bytes.slice(0, MAX_SHOWN), "latin1").toString("utf8");
  return bytes.length > MAX_SHOWN ? `${text}...` : text;
}

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

/** Decodes a string literal with its quotes to its bytes, one character each. */
function unescapeLiteral(literal: string): string {
  const isClosed = literal.length > 1 && literal.endsWith(literal.charAt(0));
  const body = literal.slice(1, isClosed ? -1 : undefined);
  if (!body.includes("\\")) return body;
  return body.replace(ESCAPE, (_, octal, hex, high, low, unicode, wide, other: string) => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    if (high !== undefined)
      return utf8(String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)).codePointAt(0)!);
    if (unicode !== undefined) return utf8(Number.parseInt(unicode, 16));
    if (wide !== undefined) return utf8(Math.min(Number.parseInt(wide, 16), 0x10ffff));
    return SIMPLE[other] ?? other;
  });
}

function utf8(codePoint: number): string {
  return Buffer.from(String.fromCodePoint(codePoint), "utf8").toString("latin1");
}

/** Kind of a token. These are protobuf's kinds, which decide which values are allowed. */
type TokenKind = "start" | "end" | "identifier" | "integer" | "float" | "string" | "symbol";

interface Token {
  readonly kind: TokenKind;
  /** Bytes of the token as written, one character each; strings with their quotes. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

const TAB_WIDTH = 8;
const WORD = /[A-Za-z0-9_]+/y;
const DIGITS = /[0-9]+/y;
const PLAIN = /[^"'\\\n\t\0]+/y;
const COMMENT = /[^\n]+/y;
/** Largest number of errors that are kept. The first ones show the cause. */
const MAX_ERRORS = 20;

/**
 * Splits a text in protobuf's text format into tokens, one at a time. It follows the rules of protobuf's own tokenizer,
 * so that errors are reported at the same places. It continues after an error.
 */
class Tokenizer {
  current: Token = { kind: "start", text: "", line: 1, column: 1 };
  readonly errors: TextError[] = [];
  #position = 0;
  #line = 1;
  #column = 1;

  /** @param text the bytes of the text, one character each */
  constructor(private readonly text: string) {
    if (text.startsWith("\xef\xbb\xbf")) for (let i = 0; i < 3; i++) this.#advance();
  }

  next(): void {
    const previous = this.current;
    this.#skipBlanksAndComments();
    const start = this.#position;
    const line = this.#line;
    const column = this.#column;
    const c = this.#peek();
    const kind =
      c === ""
        ? "end"
        : this.#consume(c, start > 0 && previous.kind === "identifier" && this.#touches(previous));
    this.current = { kind, text: this.text.slice(start, this.#position), line, column };
  }

  #touches({ line, column, text }: Token): boolean {
    return line === this.#line && column + text.length === this.#column;
  }

  #consume(c: string, afterIdentifier: boolean): TokenKind {
    if (isLetter(c)) {
      this.#run(WORD);
      return "identifier";
    }
    this.#advance();
    if (isDigit(c)) return this.#number(c === "0", false);
    if (c === "." && isDigit(this.#peek())) {
      if (afterIdentifier) this.#error("Need space between identifier and decimal point.", -1);
      return this.#number(false, true);
    }
    if (c === '"' || c === "'") {
      this.#string(c);
      return "string";
    }
    if (c >= "\x80") this.#error(`Interpreting non ascii codepoint ${c.charCodeAt(0)}.`, -1);
    return "symbol";
  }

  #skipBlanksAndComments(): void {
    for (;;) {
      const c = this.#peek();
      if (c === "") return;
      if (isBlank(c)) this.#advance();
      else if (c === "#") this.#run(COMMENT);
      else if (c < " ") {
        this.#error("Invalid control characters encountered in text.");
        while (this.#peek() !== "" && this.#peek() < " " && !isBlank(this.#peek())) this.#advance();
      } else return;
    }
  }

  /** Reads the rest of a number, after its first character. */
  #number(startsWithZero: boolean, startsWithDot: boolean): TokenKind {
    let isFloat = startsWithDot;
    if (startsWithZero && this.#take("xX")) {
      if (this.#digits(isHexDigit) === 0) this.#error('"0x" must be followed by hex digits.');
    } else if (startsWithZero && isDigit(this.#peek())) {
      this.#digits(isOctalDigit);
      if (isDigit(this.#peek())) {
        this.#error("Numbers starting with leading zero must be in octal.");
        this.#digits(isDigit);
      }
    } else {
      this.#run(DIGITS);
      if (!startsWithDot && this.#take(".")) {
        isFloat = true;
        this.#run(DIGITS);
      }
      if (this.#take("eE")) {
        isFloat = true;
        this.#take("-+");
        if (this.#digits(isDigit) === 0) this.#error('"e" must be followed by exponent.');
      }
      if (this.#take("fF")) isFloat = true;
    }
    if (isLetter(this.#peek())) this.#error("Need space between number and identifier.");
    else if (this.#peek() === ".") {
      this.#error(
        isFloat
          ? "Already saw decimal point or exponent; can't have another one."
          : "Hex and octal numbers must be integers.",
      );
    }
    return isFloat ? "float" : "integer";
  }

  /** Reads the rest of a string, after its first quote. */
  #string(quote: string): void {
    for (;;) {
      this.#run(PLAIN);
      const c = this.#peek();
      if (c === "" || c === "\0" || c === "\n") {
        this.#error(
          c === "\n" ? "String literals cannot cross line boundaries." : "Unexpected end of string.",
        );
        return;
      }
      this.#advance();
      if (c === quote) return;
      if (c === "\\") this.#escape();
    }
  }

  #escape(): void {
    if (this.#take("abfnrtv\\?'\"01234567")) return;
    if (this.#take("x")) {
      if (!this.#takeIf(isHexDigit)) this.#error("Expected hex digits for escape sequence.");
    } else if (this.#take("u")) {
      if (!this.#takeAll(4)) this.#error("Expected four hex digits for \\u escape sequence.");
    } else if (this.#take("U")) {
      if (!(this.#take("0") && this.#take("0") && this.#take("01") && this.#takeAll(5))) {
        this.#error("Expected eight hex digits up to 10ffff for \\U escape sequence");
      }
    } else this.#error("Invalid escape sequence in string literal.");
  }

  #takeAll(hexDigits: number): boolean {
    for (let i = 0; i < hexDigits; i++) if (!this.#takeIf(isHexDigit)) return false;
    return true;
  }

  #digits(is: (c: string) => boolean): number {
    let count = 0;
    while (this.#takeIf(is)) count++;
    return count;
  }

  #take(characters: string): boolean {
    return this.#takeIf((c) => characters.includes(c));
  }

  #takeIf(is: (c: string) => boolean): boolean {
    const c = this.#peek();
    if (c === "" || !is(c)) return false;
    this.#advance();
    return true;
  }

  /** Consumes the match, which has no line ends, and tabs only where the column does not matter. */
  #run(pattern: RegExp): void {
    pattern.lastIndex = this.#position;
    const length = pattern.exec(this.text)?.[0].length ?? 0;
    this.#position += length;
    this.#column += length;
  }

  /** The next character; "" at the end. */
  #peek(): string {
    return this.text.charAt(this.#position);
  }

  #advance(): void {
    const c = this.text.charAt(this.#position++);
    if (c === "\n") {
      this.#line++;
      this.#column = 1;
    } else this.#column += c === "\t" ? TAB_WIDTH - ((this.#column - 1) % TAB_WIDTH) : 1;
  }

  #error(text: string, offset = 0): void {
    if (this.errors.length === MAX_ERRORS) return;
    this.errors.push({ line: this.#line, column: this.#column + offset, text, field: "" });
  }
}

function isBlank(c: string): boolean {
  return c === " " || (c >= "\t" && c <= "\r");
}

function isLetter(c: string): boolean {
  return (c >= "a" && c <= "z") || (c >= "A" && c <= "Z") || c === "_";
}

function isDigit(c: string): boolean {
  return c >= "0" && c <= "9";
}

function isOctalDigit(c: string): boolean {
  return c >= "0" && c <= "7";
}

function isHexDigit(c: string): boolean {
  return isDigit(c) || (c >= "a" && c <= "f") || (c >= "A" && c <= "F");
}

/** One error in a text, with its position: lines and columns from 1, columns in bytes. */
export interface TextError {
  readonly line: number;
  readonly column: number;
  readonly text: string;
  /** Path of the field that was being read, such as `input[0].dims`; "" at the top. */
  readonly field: string;
}
