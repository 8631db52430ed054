import { type DurationCurve, expectedMs } from "./duration-curve.js";
import { type AdaptiveRules, largestBatch } from "./largest-batch.js";

/** Number of usual deviations added to the durations under full caution. */
const SAFETY = 2;

/** Work that has to be done before a new request is answered. */
export interface WorkAhead {
  /** Rows in the queue that run before the request. */
  readonly rowsAhead: number;
  /** Rows of the request itself. */
  readonly rows: number;
  /** Milliseconds until each instance is idle, ascending; at least one. */
  readonly idleInMs: readonly number[];
  readonly curve: DurationCurve;
  readonly rowsPerMs: number;
  /** Caution, from 0 to 1: how much to allow for later requests in the same batch and for batches that take longer. */
  readonly caution: number;
}

/**
 * Expected milliseconds until a new request is answered. Batches of the largest size run before it, each on the
 * instance that is idle first, then its own batch.
 */
export function expectedLatencyMs(ahead: WorkAhead, rules: AdaptiveRules): number {
  const { rowsAhead, rows, idleInMs, curve, rowsPerMs, caution } = ahead;
  const largest = largestBatch(curve, rules);
  const batchesBefore = Math.floor(rowsAhead / largest);
  const rounds = Math.floor(batchesBefore / idleInMs.length);
  const startMs = idleInMs[batchesBefore % idleInMs.length]! + rounds * expectedMs(curve, largest);
  const joined = rowsAhead - batchesBefore * largest + rows + caution * rowsPerMs * startMs;
  const ownMs = expectedMs(curve, Math.max(rows, Math.min(largest, joined)));
  const deviationMs = curve.spread * Math.hypot(ownMs, startMs / Math.sqrt(rounds + 1));
  return startMs + ownMs + SAFETY * caution * deviationMs;
}
