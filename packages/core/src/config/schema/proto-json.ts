import { TritonError } from "@tritonjs/protocol";

/** Characters that an error shows on either side of the faulty place. */
const CONTEXT = 20;

const TOKEN = "Unexpected token.";

/** Deepest nesting; protobuf's limit. */
const MAX_DEPTH = 100;

const SPACE = /[\t\n\v\f\r ]*/y;
const KEY = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const KEYWORD = /true|false|null/y;
const NUMBER = /[-0-9][-+.0-9eE]*/y;
const LETTER = /[A-Za-z_$]/;

const KEYWORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Reads JSON as protobuf does for messages. Names need no quotes, quotes may be single, a comma may follow the last
 * element or member, and strings may contain line breaks.
 *
 * @throws TritonError INVALID_ARG with protobuf's text: the reason, an excerpt of the text and a mark below it.
 */
export function parseProtoJson(text: string): unknown {
  return new ProtoJsonReader(text).document();
}

class ProtoJsonReader {
  #at = 0;
  #depth = 0;

  constructor(private readonly text: string) {}

  document(): unknown {
    const value = this.#value();
    this.#space();
    if (this.#at < this.text.length) throw this.#fault("Parsing terminated before end of input.");
    return value;
  }

  #value(): unknown {
    this.#space();
    const character = this.text[this.#at];
    if (character === undefined) throw this.#fault("Unexpected end of string. Expected a value.");
    if (character === "{") return this.#nested(() => this.#object());
    if (character === "[") return this.#nested(() => this.#array());
    if (character === '"' || character === "'") return this.#string(character);
    const keyword = this.#match(KEYWORD);
    if (keyword !== undefined) return KEYWORDS[keyword];
    const number = this.#match(NUMBER);
    if (number !== undefined) return this.#number(number);
    throw this.#fault(LETTER.test(character) || "}],:".includes(character) ? TOKEN : "Expected a value.");
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw this.#fault("Message too deep.");
    this.#at++;
    const value = read();
    this.#depth--;
    return value;
  }

  #object(): Record<string, unknown> {
    const members: [string, unknown][] = [];
    for (;;) {
      this.#space();
      if (this.#skip("}")) break;
      const name = this.#name();
      this.#space();
      if (!this.#skip(":")) throw this.#expected("Expected : between key:value pair.");
      members.push([name, this.#value()]);
      this.#space();
      if (this.#skip("}")) break;
      if (!this.#skip(",")) throw this.#expected("Expected , or } after key:value pair.");
    }
    return Object.fromEntries(members);
  }

  #name(): string {
    const quote = this.text[this.#at];
    if (quote === '"' || quote === "'") return this.#string(quote);
    const name = this.#match(KEY);
    if (name === undefined) throw this.#expected("Expected an object key or }.");
    return name;
  }

  #array(): unknown[] {
    const elements: unknown[] = [];
    for (;;) {
      this.#space();
      if (this.#skip("]")) break;
      elements.push(this.#value());
      this.#space();
      if (this.#skip("]")) break;
      if (!this.#skip(",")) throw this.#expected("Expected , or ] after array value.");
    }
    return elements;
  }

  #string(quote: string): string {
    const start = this.#at++;
    let value = "";
    for (;;) {
      const character = this.text[this.#at++];
      if (character === undefined) {
        this.#at = start;
        throw this.#fault("Closing quote expected in string.");
      }
      if (character === quote) return value;
      value += character === "\\" ? this.#escape() : character;
    }
  }

  /** Reads the character after a backslash. A character without a special meaning is kept as it is. */
  #escape(): string {
    const character = this.text[this.#at++] ?? "";
    if (character !== "u") return ESCAPES[character] ?? character;
    const code = this.#match(/[0-9A-Fa-f]{4}/y);
    if (code === undefined) throw this.#fault("Invalid escape sequence.");
    return String.fromCharCode(Number.parseInt(code, 16));
  }

  #number(text: string): number {
    const start = this.#at - text.length;
    const octal = /^-?0[0-9xX]/.test(text + (this.text[this.#at] ?? ""));
    const value = /^-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!octal && Number.isFinite(value)) return value;
    this.#at = start;
    if (octal) throw this.#fault("Octal/hex numbers are not valid JSON values.");
    throw this.#fault(
      Number.isNaN(value) ? "Unable to parse number." : "Number exceeds the range of double.",
    );
  }

  #match(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #space(): void {
    this.#match(SPACE);
  }

  #skip(character: string): boolean {
    if (this.text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #expected(reason: string): TritonError {
    return this.#fault(this.#at < this.text.length ? reason : `Unexpected end of string. ${reason}`);
  }

  #fault(reason: string): TritonError {
    const start = Math.max(0, this.#at - CONTEXT);
    const shown = this.text.slice(start, this.#at + CONTEXT);
    return new TritonError("INVALID_ARG", `${reason}\n${shown}\n${" ".repeat(this.#at - start)}^`, {
      reason: "INVALID_CONFIG",
    });
  }
}
