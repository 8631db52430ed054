import type { Duration } from "@tritonjs/protocol";
import type { Exemplar } from "./metric-families.js";

/** Makes a duration without events. */
export function zeroDuration(): Duration {
  return { count: 0, ns: 0 };
}

/** Adds one event. Its time is never negative, whatever the clock did. */
export function addTo(duration: Duration, milliseconds: number): void {
  duration.count++;
  duration.ns += Math.max(0, Math.round(milliseconds * 1e6));
}

/** Times of one execution, in milliseconds on the model's clock. */
export interface ExecutionTimes {
  /** When the instance took the batch. */
  start: number;
  /** When the inputs were ready for the model. */
  inputEnd: number;
  /** When the model had its outputs. */
  inferEnd: number;
  /** When the outputs were split and checked. */
  end: number;
}

/** Times of computing one answer, in milliseconds. They are the times of its whole batch. */
export interface ComputeTimes {
  readonly inputMs: number;
  readonly inferMs: number;
  readonly outputMs: number;
}

/** Upper bounds in milliseconds: from a quick model without a queue to a client deadline of 10 s. */
export const DURATION_BOUNDS_MS = [
  0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
] as const;

/** Buckets for each doubling of the time: the width of a bucket is 9% of its time. */
const PER_OCTAVE = 8;

/** Doublings from a microsecond to 134 seconds. */
const OCTAVES = 27;

/** Bounds of equal ratio, with which quantiles are read to within 9%. */
export const OCTAVE_BOUNDS_MS = Float64Array.from(
  { length: PER_OCTAVE * OCTAVES - 1 },
  (_, i) => 2 ** ((i + 1) / PER_OCTAVE) / 1000,
);

/** Numbers of durations by upper bounds. Observing a duration takes some nanoseconds. */
export class LatencyHistogram {
  sumMs = 0;
  /** Durations of each bound alone, and of those above all. */
  readonly #counts: Float64Array;
  #exemplars: (Exemplar | undefined)[] | undefined;

  /** @param boundsMs upper bounds in milliseconds, ascending */
  constructor(
    readonly boundsMs: ArrayLike<number>,
    counts = new Float64Array(boundsMs.length + 1),
  ) {
    this.#counts = counts;
  }

  observe(milliseconds: number): void {
    this.sumMs += Math.max(0, milliseconds);
    this.#counts[this.#bucketOf(milliseconds)]!++;
  }

  /**
   * Remembers a traced request as an example of requests that took as long.
   *
   * @param wallMs milliseconds since 1970
   */
  exemplify(milliseconds: number, traceId: string, wallMs: number): void {
    this.#exemplars ??= [];
    this.#exemplars[this.#bucketOf(milliseconds)] = {
      labelSet: { trace_id: traceId },
      value: Math.max(0, milliseconds) / 1000,
      timestamp: wallMs / 1000,
    };
  }

  /** The last example of each bound, and of those above all. */
  get exemplars(): readonly (Exemplar | undefined)[] {
    return this.#exemplars ?? [];
  }

  /** Numbers of durations up to each bound, and of all. */
  cumulative(): number[] {
    let total = 0;
    return Array.from(this.#counts, (count) => {
      total += count;
      return total;
    });
  }

  /** Number of durations. */
  get total(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  copy(): LatencyHistogram {
    return new LatencyHistogram(this.boundsMs, this.#counts.slice());
  }

  /** The durations that were observed after `earlier`, a copy of this histogram. */
  since(earlier: LatencyHistogram): LatencyHistogram {
    return new LatencyHistogram(
      this.boundsMs,
      this.#counts.map((count, i) => count - earlier.#counts[i]!),
    );
  }

  /**
   * The duration in milliseconds below which a share of all durations lies: the middle of its octave's bucket. For
   * {@link OCTAVE_BOUNDS_MS} only.
   *
   * @param share between 0 and 1
   * @returns undefined without durations
   */
  quantile(share: number): number | undefined {
    const { total } = this;
    if (total === 0) return undefined;
    const wanted = Math.max(1, Math.ceil(total * share));
    const bucket = this.cumulative().findIndex((seen) => seen >= wanted);
    return 2 ** ((bucket + 0.5) / PER_OCTAVE) / 1000;
  }

  /** Index of the first bound that is not below the duration. */
  #bucketOf(milliseconds: number): number {
    let low = 0;
    let high = this.boundsMs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (milliseconds <= this.boundsMs[middle]!) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
