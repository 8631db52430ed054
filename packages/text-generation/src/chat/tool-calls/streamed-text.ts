/**
 * A reader that waits for text: it yields where the text ends for now, and is resumed when more text has arrived or the
 * text has ended.
 */
export type Reading<T> = Generator<undefined, T, undefined>;

/** Thrown when held text exceeds its limit. */
export class HeldTextLimit extends Error {}

const SPACE = /\s/;

/**
 * Text that arrives in pieces. Readers may hold it: held text can still be given back, so that text which looked like a
 * call and is not one becomes content.
 */
export class StreamedText {
  #buffer = "";
  #at = 0;
  #heldFrom: number | undefined;
  #closed = false;

  /** `limit` is the number of characters that may be held. */
  constructor(readonly limit: number) {}

  append(text: string): void {
    const kept = this.#heldFrom ?? this.#at;
    this.#buffer = this.#buffer.slice(kept) + text;
    this.#at -= kept;
    if (this.#heldFrom !== undefined) this.#heldFrom = 0;
  }

  /** No more text follows. */
  close(): void {
    this.#closed = true;
  }

  /** Begins to hold the text from here. */
  hold(): void {
    this.#heldFrom = this.#at;
  }

  /** Ends holding: the text that was read cannot be given back. */
  release(): void {
    this.#heldFrom = undefined;
  }

  /** Ends holding, and returns the text that was read meanwhile. */
  giveBack(): string {
    const text = this.#heldFrom === undefined ? "" : this.#buffer.slice(this.#heldFrom, this.#at);
    this.#heldFrom = undefined;
    return text;
  }

  /** Ends holding, and goes back to where it began. */
  rewind(): void {
    this.#at = this.#heldFrom ?? this.#at;
    this.#heldFrom = undefined;
  }

  /** Characters that have arrived and are not read. */
  get unread(): string {
    return this.#buffer.slice(this.#at);
  }

  /** Reads `length` of the unread characters. */
  take(length: number): string {
    const text = this.#buffer.slice(this.#at, this.#at + length);
    this.#at += text.length;
    if (this.#heldFrom !== undefined && this.#at - this.#heldFrom > this.limit) throw new HeldTextLimit();
    return text;
  }

  /** Waits until an unread character is there. False at the end of the text. */
  *more(): Reading<boolean> {
    while (this.#at >= this.#buffer.length) {
      if (this.#closed) return false;
      yield;
    }
    return true;
  }

  /** Waits for text beyond the text that has arrived. False at the end of the text. */
  *further(): Reading<boolean> {
    if (this.#closed) return false;
    yield;
    return true;
  }

  /** The next character, unread; empty at the end of the text. */
  *peek(): Reading<string> {
    return (yield* this.more()) ? (this.#buffer[this.#at] as string) : "";
  }

  /** Reads `literal` if it comes next. */
  *accept(literal: string): Reading<boolean> {
    for (;;) {
      const next = this.#buffer.slice(this.#at, this.#at + literal.length);
      if (next === literal) {
        this.take(literal.length);
        return true;
      }
      if (!literal.startsWith(next) || !(yield* this.further())) return false;
    }
  }

  *skipSpace(): Reading<void> {
    for (;;) {
      const next = yield* this.peek();
      if (next === "" || !SPACE.test(next)) return;
      this.take(1);
    }
  }

  /** Reads the characters that fit `pattern`, a pattern for one character. */
  *takeWhile(pattern: RegExp): Reading<string> {
    let text = "";
    for (;;) {
      const next = yield* this.peek();
      if (next === "" || !pattern.test(next)) return text;
      text += this.take(1);
    }
  }

  /**
   * Reads up to and with `marker`, and passes the text before it on as it comes. The marker is held. False if the text
   * ends without it.
   */
  *passUntil(marker: string, pass: (text: string) => void): Reading<boolean> {
    for (;;) {
      const unread = this.unread;
      const found = unread.indexOf(marker);
      if (found !== -1) {
        pass(this.take(found));
        this.hold();
        this.take(marker.length);
        return true;
      }
      pass(this.take(unread.length - beginningAtEnd(unread, marker)));
      if (!(yield* this.further())) {
        pass(this.take(this.unread.length));
        return false;
      }
    }
  }
}

/** Number of characters at the end of `text` that may be the beginning of `marker`. */
function beginningAtEnd(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}
