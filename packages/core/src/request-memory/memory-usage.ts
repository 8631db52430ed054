/** Counters of one thread. */
const COUNTERS = { usedBytes: 0, BUDGET: 1, QUEUE: 2, RATIO: 3 } as const;
const ROW = Object.keys(COUNTERS).length;

/** Reason of a refusal. */
export type MemoryRefusal = Exclude<keyof typeof COUNTERS, "usedBytes">;

/**
 * Memory that requests use, and refused requests. Several threads may share it: each counts in a row of its own, which
 * no other thread writes, and reads the sum of all rows. A request that another thread accepts at the same moment may be
 * missing in the sum, so the budget may be exceeded by one request for each thread.
 */
export class MemoryUsage {
  #rows: Float64Array = new Float64Array(ROW);
  #at = 0;

  /** Makes the rows of several threads. */
  static rowsFor(threads: number): Float64Array {
    return new Float64Array(new SharedArrayBuffer(8 * ROW * threads));
  }

  /** Counts in a row that other threads can read, from now on. Counts of the row so far stay. */
  join(rows: Float64Array, row: number): void {
    for (let counter = 0; counter < ROW; counter++)
      rows[row * ROW + counter]! += this.#rows[this.#at + counter]!;
    this.#rows = rows;
    this.#at = row * ROW;
  }

  /** Forgets the bytes of a thread that has ended. */
  static end(rows: Float64Array, row: number): void {
    rows[row * ROW] = 0;
  }

  get usedBytes(): number {
    return this.#sum(COUNTERS.usedBytes);
  }

  /** Number of refused requests. */
  refusals(reason: MemoryRefusal): number {
    return this.#sum(COUNTERS[reason]);
  }

  add(bytes: number): void {
    this.#rows[this.#at]! += bytes;
  }

  refused(reason: MemoryRefusal): void {
    this.#rows[this.#at + COUNTERS[reason]]! += 1;
  }

  #sum(counter: number): number {
    let sum = 0;
    for (let at = counter; at < this.#rows.length; at += ROW) sum += this.#rows[at]!;
    return sum;
  }
}
