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

/** Upper bounds in seconds: from a quick model without a queue to the deadline of a patient client. */
export const DURATION_BOUNDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;

const BOUNDS_MS = DURATION_BOUNDS.map((seconds) => seconds * 1000);

/** Durations by upper bounds, and an example for each bound. Observing a duration takes some nanoseconds. */
export class DurationHistogram {
  sumMs = 0;
  /** Observations of each bound alone, and of those above all. */
  readonly #counts = new Float64Array(BOUNDS_MS.length + 1);
  #exemplars: (Exemplar | undefined)[] | undefined;

  observe(milliseconds: number): void {
    this.sumMs += Math.max(0, milliseconds);
    this.#counts[bucketOf(milliseconds)]!++;
  }

  /**
   * Remembers a traced request as an example of requests that took as long.
   *
   * @param wallMs milliseconds since 1970
   */
  exemplify(milliseconds: number, traceId: string, wallMs: number): void {
    this.#exemplars ??= [];
    this.#exemplars[bucketOf(milliseconds)] = {
      labelSet: { trace_id: traceId },
      value: Math.max(0, milliseconds) / 1000,
      timestamp: wallMs / 1000,
    };
  }

  /** The last example of each bound, and of those above all. */
  get exemplars(): readonly (Exemplar | undefined)[] {
    return this.#exemplars ?? [];
  }

  /** Numbers of observations up to each bound, and of all. */
  cumulative(): number[] {
    let total = 0;
    return Array.from(this.#counts, (count) => {
      total += count;
      return total;
    });
  }
}

function bucketOf(milliseconds: number): number {
  let index = 0;
  while (index < BOUNDS_MS.length && milliseconds > BOUNDS_MS[index]!) index++;
  return index;
}

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
