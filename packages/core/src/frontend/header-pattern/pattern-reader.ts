/** A fault of a pattern, in the words of RE2. */
export class PatternFault extends Error {
  override readonly name = "PatternFault";
}

const MAX_CODE = 0x10ffff;

/** Escapes of characters by their letter. */
const LETTERS: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };

/** Reads a pattern from its start to its end. */
export class PatternReader {
  at = 0;

  constructor(readonly text: string) {}

  get ended(): boolean {
    return this.at >= this.text.length;
  }

  /** True if the text continues with `token`. */
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

  /** Reads one character that is not an escape. */
  character(): number {
    const code = this.text.codePointAt(this.at)!;
    this.at += code > 0xffff ? 2 : 1;
    return code;
  }

  /** Reads an escape of one character. */
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
