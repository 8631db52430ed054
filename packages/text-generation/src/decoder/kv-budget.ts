/** Space for keys and values, counted in tokens of padded rows. */
export class KvBudget {
  /** @param tokens number of tokens that fit */
  constructor(readonly tokens: number) {}

  /**
   * Tokens that texts need when they run together: each row is as long as the longest.
   *
   * @param lengths lengths of the texts after the next step
   */
  demand(lengths: readonly number[]): number {
    return lengths.length === 0 ? 0 : lengths.length * Math.max(...lengths);
  }

  fits(lengths: readonly number[]): boolean {
    return this.demand(lengths) <= this.tokens;
  }

  /** Length that one more text may have; 0 if there is no room for it. */
  roomBeside(lengths: readonly number[]): number {
    const each = Math.floor(this.tokens / (lengths.length + 1));
    return lengths.some((length) => length > each) ? 0 : each;
  }
}
