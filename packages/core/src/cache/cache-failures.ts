import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelStatistics } from "../observe/statistics.js";

/** Warnings come no more often than this: a cache that is down fails every request's lookup. */
const WARN_EVERY_MS = 60_000;

/** Counts what went wrong in a cache, and says so now and then. */
export class CacheFailures {
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly model: string,
    private readonly clock: Clock,
    private readonly statistics: ModelStatistics,
  ) {}

  record(what: "lookup" | "insertion", error: unknown): void {
    this.statistics.cacheFailures++;
    const now = this.clock.now();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    process.emitWarning(
      `${what} in the response cache failed for model '${this.model}': ${TritonError.from(error).message}`,
      "TritonWarning",
    );
  }
}
