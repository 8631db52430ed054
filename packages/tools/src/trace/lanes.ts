/** Distributes spans of time over rows, so that the spans of a row do not overlap. */
export class Lanes {
  /** End of the last span of each row. */
  readonly #ends: number[] = [];

  /**
   * Number of the row for a span, from 0. Spans must come in the order of their starts.
   */
  place(start: number, end: number): number {
    const free = this.#ends.findIndex((one) => one <= start);
    const row = free < 0 ? this.#ends.length : free;
    this.#ends[row] = end;
    return row;
  }
}
