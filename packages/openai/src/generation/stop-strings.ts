/** Text that may be sent, and whether a stop string came after it. */
export interface StopPiece {
  readonly text: string;
  readonly stopped: boolean;
}

/**
 * Finds stop strings in text that comes in pieces. It holds back the end of the text that may be the beginning of a stop
 * string.
 */
export class StopStrings {
  readonly #stops: readonly string[];
  readonly #included: boolean;
  #held = "";

  /** @param included whether the text ends with the stop string, instead of before it */
  constructor(stops: readonly string[], included: boolean) {
    this.#stops = stops;
    this.#included = included;
  }

  push(piece: string): StopPiece {
    const text = this.#held + piece;
    const found = this.#firstStop(text);
    if (found !== undefined) {
      this.#held = "";
      return { text: text.slice(0, found.at + (this.#included ? found.stop.length : 0)), stopped: true };
    }
    const safe = text.length - this.#begunLength(text);
    this.#held = text.slice(safe);
    return { text: text.slice(0, safe), stopped: false };
  }

  /** The text that was held back, once no more comes. */
  end(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }

  #firstStop(text: string): { at: number; stop: string } | undefined {
    let first: { at: number; stop: string } | undefined;
    for (const stop of this.#stops) {
      const at = text.indexOf(stop);
      if (at >= 0 && (first === undefined || at < first.at)) first = { at, stop };
    }
    return first;
  }

  /** Length of the longest end of the text with which a stop string begins. */
  #begunLength(text: string): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
