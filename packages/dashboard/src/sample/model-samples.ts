import type { LatencyCounts, ObservedCounters } from "@tritonjs/core/frontend";

/**
 * What one second of a model looked like; `undefined` where nothing was measured. The order is that of
 * {@link POINT_COLUMNS}.
 */
export type Point = readonly (number | null)[];

/** Names of the values of a point. Times are in milliseconds. */
export const POINT_COLUMNS = [
  "at",
  "requestsPerSecond",
  "failuresPerSecond",
  "queued",
  "oldestMs",
  "meanBatch",
  "requestP50",
  "requestP90",
  "requestP99",
  "queueP50",
  "queueP99",
  "computeP50",
  "computeP99",
  "busyInstances",
] as const;

/** Samples over which quantiles are taken: ten seconds, so that a few requests a second give a steady picture. */
const WINDOW = 10;

interface Latencies {
  readonly request: LatencyCounts;
  readonly queue: LatencyCounts;
  readonly compute: LatencyCounts;
}

/** The last minutes of one model version. */
export class ModelSamples {
  readonly #points: Point[] = [];
  /** Latencies at the last samples, oldest first. Samples without a request in between share a copy. */
  readonly #latencies: Latencies[] = [];
  #previous: { readonly at: number; readonly counters: ObservedCounters } | undefined;

  /** Points, oldest first. */
  get points(): readonly Point[] {
    return this.#points;
  }

  get last(): Point | undefined {
    return this.#points.at(-1);
  }

  /**
   * Takes a sample.
   *
   * @param at wall time in milliseconds
   * @param kept number of points that are kept
   */
  add(at: number, counters: ObservedCounters, kept: number): void {
    const previous = this.#previous;
    this.#previous = { at, counters };
    // The counters restart from zero when a version is loaded again.
    const isContinued = previous !== undefined && counters.succeeded >= previous.counters.succeeded;
    const seconds = isContinued ? Math.max(0.001, (at - previous.at) / 1000) : 1;
    const rate = (name: "succeeded" | "failed") =>
      isContinued ? (counters[name] - previous.counters[name]) / seconds : null;
    const executions = isContinued ? counters.executions - previous.counters.executions : 0;
    const inferences = isContinued ? counters.inferences - previous.counters.inferences : 0;
    this.#points.push([
      at,
      rate("succeeded"),
      rate("failed"),
      counters.queued,
      counters.oldestMicroseconds / 1000,
      executions > 0 ? inferences / executions : null,
      ...this.#quantiles(
        counters.latencies,
        !isContinued || counters.succeeded > previous.counters.succeeded,
      ),
      counters.busyInstances,
    ]);
    if (this.#points.length > kept) this.#points.splice(0, this.#points.length - kept);
  }

  #quantiles(live: Latencies | undefined, changed: boolean): (number | null)[] {
    if (live === undefined) return new Array<null>(7).fill(null);
    const earlier = this.#latencies[0];
    const last = this.#latencies.at(-1);
    const copy =
      changed || last === undefined
        ? { request: live.request.copy(), queue: live.queue.copy(), compute: live.compute.copy() }
        : last;
    this.#latencies.push(copy);
    if (this.#latencies.length > WINDOW) this.#latencies.shift();
    // Nothing was answered in the window.
    if (earlier === copy) return new Array<null>(7).fill(null);
    const since = (name: keyof Latencies) =>
      earlier === undefined ? copy[name] : copy[name].since(earlier[name]);
    const request = since("request");
    const queue = since("queue");
    const compute = since("compute");
    return [
      request.quantile(0.5),
      request.quantile(0.9),
      request.quantile(0.99),
      queue.quantile(0.5),
      queue.quantile(0.99),
      compute.quantile(0.5),
      compute.quantile(0.99),
    ].map((value) => value ?? null);
  }
}
