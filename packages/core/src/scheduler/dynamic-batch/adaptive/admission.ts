import { type DurationCurve, expectedMs } from "./duration-fit.js";

const SAFETY = +(process.env.DS ?? 1);

import { type AdaptiveRules, largestBatch } from "./plan-batch.js";

/** What stands between a new request and its answer. */
export interface WorkAhead {
  /** Rows in the queue that run before the request. */
  readonly rowsAhead: number;
  /** Rows of the request itself. */
  readonly rows: number;
  /** Milliseconds until each instance is idle, ascending. */
  readonly idleInMs: readonly number[];
  readonly curve: DurationCurve;
  readonly arrivalRate: number;
  readonly caution: number;
}

/** Milliseconds until a new request would have its answer. */
export function expectedLatencyMs(ahead: WorkAhead, rules: AdaptiveRules): number {
  const { rowsAhead, rows, idleInMs, curve } = ahead;
  const largest = largestBatch(curve, rules);
  const batchesBefore = Math.floor(rowsAhead / largest);
  const instances = idleInMs.length;
  const round = Math.floor(batchesBefore / instances);
  const startMs = idleInMs[batchesBefore % instances]! + round * expectedMs(curve, largest);
  // Others join the batch until it starts.
  const joined = rowsAhead - batchesBefore * largest + rows + Math.min(1, ahead.caution) * ahead.arrivalRate * startMs;
  const ownMs = expectedMs(curve, Math.max(rows, Math.min(largest, joined)));
  const margin = SAFETY * ahead.caution * curve.spread * Math.hypot(ownMs, startMs / Math.sqrt(round + 1));
  return startMs + ownMs + margin;
}
