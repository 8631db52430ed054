/** Text that may be sent, and whether a stop text ended it. */
export interface CertainText {
  /** Text that may be sent now; often empty. */
  readonly text: string;
  /** True if a stop text has ended the text. */
  readonly stopped: boolean;
}

/**
 * Ends a text at the first of several stop texts, wherever the borders of its pieces lie. It holds back the end of the
 * text for as long as that end may be the beginning of a stop text, or half of a character:
 *
 * ```
 * stop "END":  "one E" -> "one "     "N" -> ""     "TRY" -> "ENTRY"
 *                    held "E"       held "EN"    no stop text: all of it
 * ```
 *
 * Of several stop texts, the one that ends first counts. So the result does not depend on the pieces.
 */
export class StopTexts {
  readonly #stops: readonly string[];
  readonly #keep: boolean;
  #held = "";

  /**
   * @param stops stop texts, none empty
   * @param keep whether the stop text stays in the text
   */
  constructor(stops: readonly string[], keep = false) {
    this.#stops = stops;
    this.#keep = keep;
  }

  /** Takes the next piece, and returns the text that is certain now. */
  take(piece: string): CertainText {
    const text = this.#held + piece;
    const found = this.#firstStop(text);
    if (found !== undefined) {
      this.#held = "";
      return { text: text.slice(0, this.#keep ? found.end : found.start), stopped: true };
    }
    const certain = text.length - this.#uncertainLength(text);
    this.#held = text.slice(certain);
    return { text: text.slice(0, certain), stopped: false };
  }

  /** Returns the text that is still held back, once no more pieces follow. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  #firstStop(text: string): { readonly start: number; readonly end: number } | undefined {
    let first: { start: number; end: number } | undefined;
    for (const stop of this.#stops) {
      const start = text.indexOf(stop);
      if (start < 0) continue;
      const end = start + stop.length;
      if (first === undefined || end < first.end || (end === first.end && start < first.start)) {
        first = { start, end };
      }
    }
    return first;
  }

  /** Length of the longest end of `text` with which a stop text begins; at least that of half a character. */
  #uncertainLength(text: string): number {
    let longest = /[\ud800-\udbff]$/.test(text) ? 1 : 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) {
          longest = length;
          break;
        }
      }
    }
    return longest;
  }
}
