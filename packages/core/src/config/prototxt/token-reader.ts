import type { TextError } from "./text-error.js";
import { Tokenizer, type TokenKind } from "./tokenizer.js";

/** Thrown to leave the reader at the first place where it cannot continue. */
export class Unreadable extends Error {}

/** Reads tokens one after the other, and reports unexpected ones with protobuf's texts. */
export class TokenReader {
  /** Path of the field that is being read. */
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

  /** The current token, as errors show it. */
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
/** Largest part of a token that an error shows, in characters. */
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

/**
 * Decodes a string literal to its bytes, one character each.
 *
 * @param literal the literal with its quotes, its bytes one character each
 */
function unescapeLiteral(literal: string): string {
  const isClosed = literal.length > 1 && literal.endsWith(literal.charAt(0));
  const body = literal.slice(1, isClosed ? -1 : undefined);
  if (!body.includes("\\")) return body;
  return body.replace(ESCAPE, (_, octal, hex, high, low, unicode, wide, other: string) => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    if (high !== undefined) return utf8(surrogates(Number.parseInt(high, 16), Number.parseInt(low, 16)));
    if (unicode !== undefined) return utf8(Number.parseInt(unicode, 16));
    if (wide !== undefined) return utf8(Math.min(Number.parseInt(wide, 16), 0x10ffff));
    return SIMPLE[other] ?? other;
  });
}

function surrogates(high: number, low: number): number {
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

function utf8(codePoint: number): string {
  return Buffer.from(String.fromCodePoint(codePoint), "utf8").toString("latin1");
}
