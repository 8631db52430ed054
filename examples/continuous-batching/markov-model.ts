/** Characters that follow a context, each with its number of occurrences. */
type Followers = ReadonlyMap<string, number>;

/**
 * A language model of characters. It predicts the next character from the last few, by how often each character
 * followed them in the training text. If that context never occurred, it uses a shorter one.
 */
export class MarkovModel {
  readonly #followers = new Map<string, Map<string, number>>();

  /** @param order largest number of characters in a context */
  constructor(
    text: string,
    readonly order: number,
  ) {
    for (let i = 0; i < text.length; i++) {
      for (let length = 0; length <= Math.min(order, i); length++)
        this.#count(text.slice(i - length, i), text[i]!);
    }
  }

  /**
   * The next character after a text.
   *
   * @param chance from 0 to 1; the same value gives the same character
   */
  next(text: string, chance: number): string {
    const followers = this.#known(text);
    let total = 0;
    for (const count of followers.values()) total += count;
    let left = chance * total;
    for (const [character, count] of followers) {
      left -= count;
      if (left < 0) return character;
    }
    return [...followers.keys()].at(-1)!;
  }

  #known(text: string): Followers {
    for (let length = Math.min(this.order, text.length); length > 0; length--) {
      const followers = this.#followers.get(text.slice(-length));
      if (followers !== undefined) return followers;
    }
    return this.#followers.get("")!;
  }

  #count(context: string, next: string): void {
    let followers = this.#followers.get(context);
    if (followers === undefined) {
      followers = new Map();
      this.#followers.set(context, followers);
    }
    followers.set(next, (followers.get(next) ?? 0) + 1);
  }
}
