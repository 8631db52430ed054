import { build, type Histogram } from "hdr-histogram-js";

export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/**
 * Distribution of measured values. Percentiles come from a histogram with three significant digits, so they are off by
 * at most 0.1%. Count, mean, standard deviation, minimum and maximum are exact.
 */
export class Distribution {
  readonly #histogram: Histogram = build({
    bitBucketSize: 32,
    autoResize: true,
    lowestDiscernibleValue: 1,
    highestTrackableValue: 2,
    numberOfSignificantValueDigits: 3,
    useWebAssembly: false,
  });
  #count = 0;
  #mean = 0;
  #squares = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;

  /** @param resolution smallest difference that percentiles show, in the unit of the values */
  constructor(private readonly resolution = 1e-6) {}

  get count(): number {
    return this.#count;
  }

  get mean(): number {
    return this.#count === 0 ? Number.NaN : this.#mean;
  }

  /** Standard deviation of a sample (n - 1); NaN for fewer than two values. */
  get deviation(): number {
    return this.#count < 2 ? Number.NaN : Math.sqrt(this.#squares / (this.#count - 1));
  }

  get min(): number {
    return this.#count === 0 ? Number.NaN : this.#min;
  }

  get max(): number {
    return this.#count === 0 ? Number.NaN : this.#max;
  }

  /** Adds one value. A negative one, which only a clock that was set back can cause, counts as 0. */
  record(value: number): void {
    const kept = Math.max(value, 0);
    this.#count++;
    const difference = kept - this.#mean;
    this.#mean += difference / this.#count;
    this.#squares += difference * (kept - this.#mean);
    if (kept < this.#min) this.#min = kept;
    if (kept > this.#max) this.#max = kept;
    this.#histogram.recordValue(Math.round(kept / this.resolution));
  }

  add(other: Distribution): void {
    if (other.#count === 0) return;
    const count = this.#count + other.#count;
    const difference = other.#mean - this.#mean;
    this.#squares += other.#squares + (difference * difference * this.#count * other.#count) / count;
    this.#mean += (difference * other.#count) / count;
    this.#count = count;
    this.#min = Math.min(this.#min, other.#min);
    this.#max = Math.max(this.#max, other.#max);
    this.#histogram.add(other.#histogram);
  }

  /** Value that `percentile` percent of the values do not exceed; NaN without values. */
  percentile(percentile: number): number {
    if (this.#count === 0) return Number.NaN;
    const value = this.#histogram.getValueAtPercentile(percentile) * this.resolution;
    // The histogram answers with the upper end of a bucket.
    return Math.min(this.#max, Math.max(this.#min, value));
  }

  /** `count` bars from the minimum to the 99.9th percentile, of equal width. The last bar contains all above. */
  bars(count: number): Bar[] {
    if (this.#count === 0) return [];
    const from = this.#min;
    const width = (this.percentile(99.9) - from) / count || this.resolution;
    const counts = new Array<number>(count).fill(0);
    let percentile = 0;
    for (let i = 0; i < count; i++) {
      const below = i === count - 1 ? 100 : this.#shareBelow(from + width * (i + 1));
      counts[i] = Math.round(((below - percentile) / 100) * this.#count);
      percentile = below;
    }
    return counts.map((n, i) => ({ from: from + width * i, to: from + width * (i + 1), count: n }));
  }

  /** Percentage of values that are at most `value`, by bisection of the percentiles. */
  #shareBelow(value: number): number {
    let low = 0;
    let high = 100;
    for (let step = 0; step < 24; step++) {
      const middle = (low + high) / 2;
      if (this.percentile(middle) <= value) low = middle;
      else high = middle;
    }
    return low;
  }
}

/** Exact figures of values, without those that are NaN. Percentiles are by the nearest rank. NaN without values. */
export function exactFigures(values: Iterable<number>) {
  const sorted = Float64Array.from(values)
    .filter((value) => !Number.isNaN(value))
    .sort();
  const { length: count } = sorted;
  const percentile = (p: number) => sorted[Math.max(0, Math.ceil((p / 100) * count) - 1)] ?? Number.NaN;
  const mean = sorted.reduce((sum, value) => sum + value, 0) / count;
  return { count, mean, max: percentile(100), percentile };
}
