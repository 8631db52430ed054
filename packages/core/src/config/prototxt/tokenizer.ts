import type { TextError } from "./text-error.js";

/** Kind of a token. These are protobuf's kinds, which decide which values are allowed. */
export type TokenKind = "start" | "end" | "identifier" | "integer" | "float" | "string" | "symbol";

/** A token: a range of the text. */
export interface Token {
  readonly kind: TokenKind;
  /** Bytes of the token as written, one character each; strings with their quotes. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

const TAB_WIDTH = 8;
const WORD = /[A-Za-z0-9_]+/y;
const DIGITS = /[0-9]+/y;
/** Characters of a string that need no special handling. */
const PLAIN = /[^"'\\\n\t\0]+/y;
/** The rest of a line. */
const COMMENT = /[^\n]+/y;
/** Largest number of errors that are kept. The first ones show the cause. */
const MAX_ERRORS = 20;

/**
 * Splits a text in protobuf's text format into tokens, one at a time. It follows the rules of protobuf's own tokenizer,
 * so that errors are reported at the same places. It continues after an error.
 */
export class Tokenizer {
  current: Token = { kind: "start", text: "", line: 1, column: 1 };
  readonly errors: TextError[] = [];
  #position = 0;
  #line = 1;
  #column = 1;

  /** @param text the bytes of the text, one character each */
  constructor(private readonly text: string) {
    if (text.startsWith("\xef\xbb\xbf")) for (let i = 0; i < 3; i++) this.#advance();
  }

  /** Moves on to the next token. */
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

  /**
   * Consumes everything that the pattern matches here. The match must not contain line ends, and tabs only where the
   * column does not matter.
   */
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
