/** Buckets for each doubling of the time: the width of a bucket is 9% of its time. */
const PER_OCTAVE = 8;

/** Doublings from a microsecond to 134 seconds. */
const OCTAVES = 27;

const BUCKETS = PER_OCTAVE * OCTAVES;

/** Numbers of durations by their length, in buckets of equal ratio. It reads quantiles to within 9%. */
export class LatencyCounts {
  readonly #counts: Uint32Array;

  constructor(counts = new Uint32Array(BUCKETS)) {
    this.#counts = counts;
  }

  /** Counts a duration in milliseconds. */
  add(milliseconds: number): void {
    const microseconds = milliseconds * 1000;
    const bucket = microseconds > 1 ? Math.floor(Math.log2(microseconds) * PER_OCTAVE) : 0;
    this.#counts[Math.min(BUCKETS - 1, bucket)]!++;
  }

  /** Number of durations. */
  get total(): number {
    let total = 0;
    for (let i = 0; i < BUCKETS; i++) total += this.#counts[i]!;
    return total;
  }

  copy(): LatencyCounts {
    return new LatencyCounts(this.#counts.slice());
  }

  /** The durations that were added after `earlier`, a copy of these counts. */
  since(earlier: LatencyCounts): LatencyCounts {
    const counts = this.#counts.slice();
    for (let i = 0; i < BUCKETS; i++) counts[i]! -= earlier.#counts[i]!;
    return new LatencyCounts(counts);
  }

  /**
   * The duration in milliseconds below which a share of all durations lies.
   *
   * @param share between 0 and 1
   * @returns undefined without durations
   */
  quantile(share: number): number | undefined {
    const { total } = this;
    if (total === 0) return undefined;
    const wanted = Math.max(1, Math.ceil(total * share));
    let bucket = 0;
    for (let seen = this.#counts[0]!; seen < wanted; seen += this.#counts[bucket]!) bucket++;
    return 2 ** ((bucket + 0.5) / PER_OCTAVE) / 1000;
  }
}
