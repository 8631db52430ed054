import { type DurationCurve, expectedMs } from "./duration-curve.js";
import { type AdaptiveRules, largestBatch } from "./largest-batch.js";

/** Usual deviations of the durations to reckon with under full caution. */
const SAFETY = 2;

/** What stands between a new request and its answer. */
export interface WorkAhead {
  /** Rows in the queue that run before the request. */
  readonly rowsAhead: number;
  /** Rows of the request itself. */
  readonly rows: number;
  /** Milliseconds until each instance is idle, ascending; at least one. */
  readonly idleInMs: readonly number[];
  readonly curve: DurationCurve;
  readonly rowsPerMs: number;
  /** How much to reckon with, from 0 to 1: later requests in the same batch, and batches that take longer. */
  readonly caution: number;
}

/**
 * Milliseconds until a new request would have its answer: batches of the largest size before it, one after the other
 * on whichever instance is idle first, then its own.
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
