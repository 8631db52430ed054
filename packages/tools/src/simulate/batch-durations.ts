/** One batch that was measured. */
export interface MeasuredBatch {
  readonly rows: number;
  /** Start in milliseconds on the clock of the measurement. */
  readonly startMs: number;
  readonly durationMs: number;
}

/** Duration of a batch as a line: `fixedMs + perRowMs * rows`. */
export interface DurationLine {
  readonly fixedMs: number;
  readonly perRowMs: number;
}

/** Batches of one size that suffice for a median of their own. */
const ENOUGH = 5;

/**
 * A batch that took more than this many times the typical duration was held up: what it took beyond the typical duration
 * is a pause of the machine.
 */
const SLOWEST = 2;

/**
 * Durations of batches, learned from measured ones. Each is the typical duration of its size, changed as the machine
 * was faster or slower than usual at that moment. So a moment at which the machine was held up stays one.
 */
export class BatchDurations {
  readonly line: DurationLine;
  readonly #medians = new Map<number, number>();
  /** By start. */
  readonly #batches: readonly MeasuredBatch[];

  /**
   * @param batches at least one
   * @throws RangeError without a batch
   */
  constructor(batches: readonly MeasuredBatch[]) {
    if (batches.length === 0) throw new RangeError("expected at least one measured batch, got none");
    this.#batches = [...batches].sort((a, b) => a.startMs - b.startMs);
    const bySize = new Map<number, number[]>();
    for (const { rows, durationMs } of batches) {
      const known = bySize.get(rows);
      if (known === undefined) bySize.set(rows, [durationMs]);
      else known.push(durationMs);
    }
    this.line = fitLine(bySize);
    for (const [rows, durations] of bySize) {
      if (durations.length >= ENOUGH) this.#medians.set(rows, median(durations));
    }
  }

  /** Typical milliseconds of a batch: the median of its size, or the line for a size that was seldom measured. */
  typical(rows: number): number {
    return this.#medians.get(rows) ?? this.line.fixedMs + this.line.perRowMs * rows;
  }

  /** Milliseconds of a batch that starts at `atMs`. */
  at(atMs: number, rows: number): number {
    const measured = this.#batches[this.#indexAt(atMs)]!;
    const usual = this.typical(measured.rows);
    if (usual <= 0) return this.typical(rows);
    const { startMs, durationMs } = measured;
    const pauseMs = durationMs > SLOWEST * usual ? durationMs - usual : 0;
    // A batch that starts later is held up for the rest of the pause only.
    const leftMs = Math.min(pauseMs, Math.max(0, startMs + durationMs - atMs));
    return (this.typical(rows) * (durationMs - pauseMs)) / usual + leftMs;
  }

  /** Index of the last batch that started at or before `atMs`; 0 before all. */
  #indexAt(atMs: number): number {
    let [low, high] = [0, this.#batches.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#batches[middle]!.startMs <= atMs) low = middle;
      else high = middle;
    }
    return low;
  }
}

/**
 * Fits a line by least squares to the median of each size, weighted by the number of batches. A median is not affected by
 * a few batches that the machine has held up. Neither part of the line is negative.
 */
function fitLine(bySize: ReadonlyMap<number, readonly number[]>): DurationLine {
  let [weights, meanRows, meanMs] = [0, 0, 0];
  const points = [...bySize].map(([rows, durations]) => ({
    rows,
    ms: median(durations),
    weight: durations.length,
  }));
  for (const { rows, ms, weight } of points) {
    weights += weight;
    meanRows += rows * weight;
    meanMs += ms * weight;
  }
  meanRows /= weights;
  meanMs /= weights;
  let [covariance, variance] = [0, 0];
  for (const { rows, ms, weight } of points) {
    covariance += weight * (rows - meanRows) * (ms - meanMs);
    variance += weight * (rows - meanRows) ** 2;
  }
  const slope = variance === 0 ? 0 : Math.max(0, covariance / variance);
  const fixedMs = meanMs - slope * meanRows;
  return fixedMs >= 0
    ? { fixedMs, perRowMs: slope }
    : { fixedMs: 0, perRowMs: meanMs / Math.max(1, meanRows) };
}

/** Middle value; the mean of the two middle ones for an even count. NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
