/** Counts of words, and of those that are wrong, missing or too many. */
export class WordErrors {
  words = 0;
  errors = 0;

  add(expected: string, got: string): void {
    const [one, other] = [expected.split(" "), got === "" ? [] : got.split(" ")];
    this.words += one.length;
    this.errors += distance(one, other);
  }

  /** The word error rate in percent, with one digit. */
  get percent(): string {
    return ((100 * this.errors) / this.words).toFixed(1);
  }
}

/** Least number of words to change, insert and remove. */
function distance(one: readonly string[], other: readonly string[]): number {
  let costs = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (const [i, word] of one.entries()) {
    const next = [i + 1];
    for (const [j, candidate] of other.entries()) {
      const changed = costs[j]! + (word === candidate ? 0 : 1);
      next.push(Math.min(changed, costs[j + 1]! + 1, next[j]! + 1));
    }
    costs = next;
  }
  return costs.at(-1)!;
}
