/** Counts of observations by upper bounds. */
export class LatencyHistogram {
  sum = 0;
  count = 0;
  readonly bounds: readonly number[];
  readonly #counts: number[];

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.sum += value;
    this.count++;
    const index = this.bounds.findIndex((bound) => value <= bound);
    if (index >= 0) this.#counts[index]!++;
  }

  /** Observations up to each bound. */
  cumulative(): number[] {
    let total = 0;
    return this.#counts.map((count) => {
      total += count;
      return total;
    });
  }
}
