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
    const bucket = Math.floor(Math.log2(milliseconds * 1000) * PER_OCTAVE);
    this.#counts[Math.min(BUCKETS - 1, Math.max(0, bucket))]!++;
  }

  /** Number of durations. */
  get total(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  copy(): LatencyCounts {
    return new LatencyCounts(this.#counts.slice());
  }

  /** The durations that were added after `earlier`, a copy of these counts. */
  since(earlier: LatencyCounts): LatencyCounts {
    return new LatencyCounts(this.#counts.map((count, i) => count - earlier.#counts[i]!));
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
    let seen = 0;
    const bucket = this.#counts.findIndex((count) => {
      seen += count;
      return seen >= wanted;
    });
    return 2 ** ((bucket + 0.5) / PER_OCTAVE) / 1000;
  }
}
