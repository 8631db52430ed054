/**
 * Numbers of tokens in a row that have to occur earlier in a text, so that what followed them there may follow again.
 * Long rows tell places apart that have some words in common; short rows find a copy early.
 */
const ROWS = [6, 3, 2] as const;

/** Steps without a guess after one of which no token was right, for each such guess in a row. */
const PAUSE = 4;

/** Most wrong guesses in a row that lengthen the pause. */
const LONGEST_PAUSE = 8;

/**
 * Guesses the next tokens of a text from the text itself: where its last tokens have occurred before, what followed
 * then may follow again. A guess costs one wider step. Texts that copy from their prompt gain the steps of the tokens
 * that were right.
 */
export class PromptLookup {
  /** Position after the last occurrence of each row of tokens. */
  readonly #after = new Map<string, number>();
  #indexed = ROWS.at(-1)!;
  #length: number;
  #wrong = 0;
  #pause = 0;

  /** @param longest largest number of tokens of a guess */
  constructor(private readonly longest: number) {
    this.#length = longest;
  }

  /**
   * @param tokens the prompt and the text so far
   * @param most largest number of tokens of the guess
   * @returns the tokens that may follow; often none
   */
  guess(tokens: readonly number[], most: number): number[] {
    for (; this.#indexed < tokens.length; this.#indexed++) {
      for (const row of ROWS) this.#after.set(rowBefore(tokens, this.#indexed, row), this.#indexed);
    }
    if (this.#pause > 0) {
      this.#pause--;
      return [];
    }
    const places = ROWS.map((row) => this.#after.get(rowBefore(tokens, tokens.length, row)));
    const from = places.find((place) => place !== undefined);
    if (from === undefined) return [];
    const guess: number[] = [];
    const length = Math.min(this.#length, most);
    // A row that ends close to the end of the text repeats with that distance.
    for (let i = from; guess.length < length; i++) guess.push(tokens[i] ?? guess[i - tokens.length]!);
    return guess;
  }

  /** Learns how many tokens of a guess were right: the next one is longer or shorter, or has to wait. */
  learn(guessed: number, right: number): void {
    if (guessed === 0) return;
    this.#length = right === guessed ? Math.min(this.longest, 2 * guessed) : Math.max(2, right + 1);
    this.#length = Math.min(this.#length, this.longest);
    this.#wrong = right === 0 ? Math.min(this.#wrong + 1, LONGEST_PAUSE) : 0;
    this.#pause = PAUSE * this.#wrong;
  }
}

function rowBefore(tokens: readonly number[], end: number, length: number): string {
  return tokens.slice(Math.max(0, end - length), end).join(" ");
}
