/** Weight that older windows keep when a new one is counted: about the last 40 windows count. */
const KEEP = 0.975;
/** Number of empty windows after which the rate is forgotten. */
const FORGOTTEN = 200;

/** Rate and unevenness of arriving rows, counted in windows of time. */
export class ArrivalRate {
  readonly #windowMs: number;
  #windowEnd: number | undefined;
  #count = 0;
  #weight = 0;
  #mean = 0;
  #variance = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Counts rows that arrive now. */
  add(rows: number, now: number): void {
    this.#roll(now);
    this.#count += rows;
  }

  /** Rows per millisecond; 0 while the rate is unknown. */
  rowsPerMs(now: number): number {
    this.#roll(now);
    return this.#mean / this.#windowMs;
  }

  /** Variance of the rows of a window divided by their mean: 1 for independent arrivals, more for bursts. */
  get dispersion(): number {
    return this.#mean > 0 ? Math.max(1, this.#variance / this.#mean) : 1;
  }

  #roll(now: number): void {
    if (this.#windowEnd === undefined || now - this.#windowEnd > FORGOTTEN * this.#windowMs) {
      this.#windowEnd = now + this.#windowMs;
      this.#count = 0;
      this.#weight = 0;
      this.#mean = 0;
      this.#variance = 0;
    }
    while (now >= this.#windowEnd) {
      this.#weight = this.#weight * KEEP + 1;
      const step = 1 / this.#weight;
      const off = this.#count - this.#mean;
      this.#mean += step * off;
      this.#variance = (1 - step) * (this.#variance + step * off * off);
      this.#count = 0;
      this.#windowEnd += this.#windowMs;
    }
  }
}
