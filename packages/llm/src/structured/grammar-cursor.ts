import { UnheldGrammar } from "./grammar.js";

/** Place in the text of a grammar that is read. */
export class GrammarCursor {
  at = 0;

  constructor(readonly text: string) {}

  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  /** The next character; undefined at the end. */
  get next(): string | undefined {
    return this.text[this.at];
  }

  skip(text: string): boolean {
    if (!this.text.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  /** @param pattern has the flag `y` */
  looksAt(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    return pattern.test(this.text);
  }

  /** @param pattern has the flag `y` */
  take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text) ?? undefined;
    if (found !== undefined) this.at += found[0].length;
    return found;
  }

  expected(what: string): UnheldGrammar {
    const line = this.text.slice(0, this.at).split("\n").length;
    const got = this.text.slice(this.at, this.at + 20).split("\n")[0];
    return new UnheldGrammar(
      `line ${line} of the grammar: expected ${what}, got ${got === "" ? "its end" : JSON.stringify(got)}`,
    );
  }
}
