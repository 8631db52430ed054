import type { Exemplar } from "../collected-family.js";

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
