import { TextDecoder } from "node:util";
import type { TextTokenizer } from "./text-tokenizer.js";

/** Turns the tokens of one text into pieces of text. A piece never ends inside a character. */
export interface TextStream {
  /** Adds a token. Returns the text that is complete with it, often none. */
  push(id: number): string;
  /** Ends the text. Returns the rest; bytes that are not a character are U+FFFD. */
  end(): string;
}

/** Special tokens that are part of the text: all of them, or those of a set. */
export type ShownSpecialTokens = "all" | ReadonlySet<number>;

/** @param shown special tokens that are part of the text */
export function openTextStream(tokenizer: TextTokenizer, shown: ShownSpecialTokens): TextStream {
  return tokenizer.spelling === "byte_level"
    ? new ByteLevelStream(tokenizer, shown)
    : new WindowStream(tokenizer, shown);
}

function isShown(shown: ShownSpecialTokens, id: number): boolean {
  return shown === "all" || shown.has(id);
}

/** Text of a byte-level vocabulary, where each token stands for certain bytes. */
class ByteLevelStream implements TextStream {
  #decoder = newDecoder();

  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly shown: ShownSpecialTokens,
  ) {}

  push(id: number): string {
    const added = this.tokenizer.addedText(id);
    if (added === undefined) return this.#decoder.decode(this.tokenizer.bytesOf(id), { stream: true });
    if (this.tokenizer.isSpecial(id) && !isShown(this.shown, id)) return "";
    return this.end() + added;
  }

  end(): string {
    const rest = this.#decoder.decode();
    this.#decoder = newDecoder();
    return rest;
  }
}

function newDecoder(): TextDecoder {
  return new TextDecoder("utf-8", { ignoreBOM: true });
}

/** Tokens that are decoded together with new ones: a token's text may depend on the tokens before it. */
const CONTEXT = 4;

/** U+FFFD at the end may be part of a character whose other bytes are still to come. */
const UNFINISHED = "\ufffd";

/**
 * Text of other vocabularies. The decoder sees the last tokens again with each new one, because it may, for instance,
 * leave out the space before the first word.
 */
class WindowStream implements TextStream {
  #window: number[] = [];
  /** Length of the window's text that was returned. */
  #shown = 0;

  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly shown: ShownSpecialTokens,
  ) {}

  push(id: number): string {
    if (this.tokenizer.isSpecial(id)) {
      if (!isShown(this.shown, id)) return "";
      const text = this.end() + this.tokenizer.textOf(id);
      this.#window = [];
      this.#shown = 0;
      return text;
    }
    this.#window.push(id);
    const text = this.tokenizer.decode(this.#window);
    const unfinished = text.endsWith(UNFINISHED);
    const piece = text.slice(this.#shown, unfinished ? -1 : undefined);
    this.#shown += piece.length;
    if (!unfinished && this.#window.length > 2 * CONTEXT) this.#forget();
    return piece;
  }

  end(): string {
    const rest = this.tokenizer.decode(this.#window).slice(this.#shown);
    this.#shown += rest.length;
    return rest;
  }

  /** Drops the oldest tokens, if the others do not end inside a character without them. */
  #forget(): void {
    const kept = this.#window.slice(-CONTEXT);
    const text = this.tokenizer.decode(kept);
    if (text.startsWith(UNFINISHED)) return;
    this.#window = kept;
    this.#shown = text.length;
  }
}
