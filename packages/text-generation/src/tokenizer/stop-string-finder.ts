/** Text that may be shown, and whether a stop string ended it. */
export interface ReleasedText {
  readonly text: string;
  readonly stopped: boolean;
}

/**
 * Looks for strings that end a text. It holds back the end of the text for as long as it may be the beginning of such a
 * string, so a stop string is found wherever the borders of tokens are.
 */
export class StopStringFinder {
  #held = "";

  /**
   * @param strings strings that end the text
   * @param include true if the text ends with the string that ended it
   */
  constructor(
    private readonly strings: readonly string[],
    private readonly include: boolean,
  ) {}

  /** Adds text. The first stop string in it ends the text. */
  push(piece: string): ReleasedText {
    if (this.strings.length === 0) return { text: piece, stopped: false };
    const text = this.#held + piece;
    const found = this.#find(text);
    if (found !== undefined) {
      this.#held = "";
      return { text: text.slice(0, found), stopped: true };
    }
    const kept = this.#possibleStart(text);
    this.#held = text.slice(kept);
    return { text: text.slice(0, kept), stopped: false };
  }

  /** Ends the text. Returns what was held back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  /** End of the shown text, if a stop string is in it: the one that is complete first. */
  #find(text: string): number | undefined {
    let end = Number.POSITIVE_INFINITY;
    let shown: number | undefined;
    for (const stop of this.strings) {
      const at = text.indexOf(stop);
      if (at < 0 || at + stop.length >= end) continue;
      end = at + stop.length;
      shown = this.include ? end : at;
    }
    return shown;
  }

  /** The first position from which the text may go on to be a stop string. */
  #possibleStart(text: string): number {
    let first = text.length;
    for (const stop of this.strings) {
      for (let at = Math.max(0, text.length - stop.length + 1); at < first; at++) {
        if (stop.startsWith(text.slice(at))) {
          first = at;
          break;
        }
      }
    }
    return first;
  }
}
