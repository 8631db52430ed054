import { type DurationCurve, expectedMs } from "./duration-fit.js";

/** Deviations of the typical size to be prepared for. */
const SAFETY = +(process.env.WS ?? 2.5);
/** Machine time that waiting must be expected to save, as a share of what it would take without. */
const WORTH_WAITING = 0.05;

/** Share of the best throughput that is enough. */
const ENOUGH_THROUGHPUT = +(process.env.ET ?? 0.99);

/** What the configuration says. */
export interface AdaptiveRules {
  readonly targetLatencyMs: number;
  readonly maxBatchSize: number;
  /** Instances that share the queue. */
  readonly instances: number;
}

/** What is known when an instance could take a batch. */
export interface WaitingWork {
  /** Rows in the queue, at least one. */
  readonly rows: number;
  /** When the first of the waiting requests should be answered, in milliseconds on the model's clock. */
  readonly answerBy: number;
  /** Rows that arrive per millisecond. */
  readonly arrivalRate: number;
  /** Milliseconds until another instance is idle than the one that would take the batch; 0 when one is now. */
  readonly nextIdleMs: number;
  readonly curve: DurationCurve;
  /** How uneven arrivals are: 1 for those that know nothing of each other. */
  readonly dispersion: number;
  /** Share of the possible wait to use, from 0 to 1. */
  readonly patience: number;
}

/** What to do with the waiting requests. */
export interface BatchPlan {
  /** Most rows in a batch. */
  readonly maxRows: number;
  /** The batch starts at this time at the latest: now, or later. */
  readonly startAt: number;
  /** It starts before that when there are as many rows as this. */
  readonly enoughRows: number;
}

/**
 * When the next batch starts, and how large it may be.
 *
 * ```
 *  oldest request                       startAt             answerBy
 *       |---- waits, others join it ------|---- the batch -----|
 *                                         |-- who comes now waits for it --|---- the next batch ----|
 * ```
 */
export function planBatch(work: WaitingWork, now: number, rules: AdaptiveRules): BatchPlan {
  const { curve, rows, arrivalRate } = work;
  const maxRows = largestBatch(curve, rules);
  const atOnce: BatchPlan = { maxRows, startAt: now, enoughRows: rows };
  if (rows >= maxRows) return atOnce;
  const room = Math.min(maxRows, rowsThatLeaveRoom(work, rules));
  const { fixedMs, perRowMs } = curve;
  const safe = 1 + SAFETY * curve.spread;
  // Those who join while it waits make the batch longer.
  const joinMs = Math.max(0, work.answerBy - now - safe * expectedMs(curve, rows));
  const unforeseen = 2 * Math.sqrt(work.dispersion * arrivalRate * joinMs);
  const slackMs = work.answerBy - now - safe * expectedMs(curve, rows + unforeseen) - Math.min(1, rules.targetLatencyMs / 20);
  const longestMs = slackMs / (1 + safe * perRowMs * arrivalRate);
  const freeMs = Math.min(longestMs, +(process.env.FW ?? 1) * fixedMs - (now - (work.answerBy - rules.targetLatencyMs)));
  const roomMs = rows < room ? work.patience * longestMs : 0;
  const waitMs = Math.max(freeMs, roomMs);
  const enoughRows = roomMs > freeMs ? room : maxRows;
  if (waitMs <= 0) return atOnce;
  const joining = Math.min(arrivalRate * waitMs, enoughRows - rows);
  const savedMs = joining * fixedMs;
  const otherwiseMs = expectedMs(curve, rows) + joining * (fixedMs + perRowMs);
  if (savedMs < WORTH_WAITING * otherwiseMs) return atOnce;
  return { maxRows, startAt: now + waitMs, enoughRows };
}

/**
 * The largest batch with which the target can be kept under load: whoever just missed it waits for an instance, and
 * then takes as long again.
 */
export function largestBatch(curve: DurationCurve, rules: AdaptiveRules): number {
  const { targetLatencyMs: target, maxBatchSize, instances } = rules;
  const one = expectedMs(curve, 1);
  if (one >= target) return maxBatchSize;
  const underLoad =
    (target * +(process.env.UL ?? 0.5)) / (1 + +(process.env.US ?? 0) * curve.spread) + 0 * instances;
  const longest = one < underLoad ? underLoad : (one + target) / 2;
  const largest = rowsWithin(curve, longest, maxBatchSize);
  // A smaller one that is nearly as good answers sooner: n / (a + b n) >= share * N / (a + b N).
  const enough = (ENOUGH_THROUGHPUT * largest) / expectedMs(curve, largest);
  return Math.max(1, Math.min(largest, Math.ceil((enough * curve.fixedMs) / (1 - enough * curve.perRowMs))));
}

/** The largest batch now that leaves those who come while it runs enough time for a batch of their own. */
function rowsThatLeaveRoom(work: WaitingWork, rules: AdaptiveRules): number {
  const { curve, arrivalRate, nextIdleMs } = work;
  const { targetLatencyMs: target, maxBatchSize } = rules;
  if (nextIdleMs <= 0) return maxBatchSize;
  const fits = (rows: number): boolean => {
    const busyMs = Math.min(expectedMs(curve, rows), nextIdleMs);
    const coming = arrivalRate * busyMs;
    return (
      busyMs +
        (1 + SAFETY * curve.spread) *
          expectedMs(curve, coming + +(process.env.RZ ?? 4) * Math.sqrt(work.dispersion * coming)) <=
      target
    );
  };
  let least = 0;
  let most = maxBatchSize;
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}

function rowsWithin({ fixedMs, perRowMs }: DurationCurve, ms: number, maxBatchSize: number): number {
  const rows = perRowMs > 0 ? Math.floor((ms - fixedMs) / perRowMs) : maxBatchSize;
  return Math.max(1, Math.min(maxBatchSize, rows));
}
