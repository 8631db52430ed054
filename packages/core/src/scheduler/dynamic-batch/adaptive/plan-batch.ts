import { type DurationCurve, expectedMs } from "./duration-curve.js";
import { type AdaptiveRules, largestBatch } from "./largest-batch.js";

/** Batches are assumed to last this many usual deviations longer than expected. */
const DURATION_SAFETY = 2.5;
/** Arrivals during a wait are assumed to be this many deviations more than expected. */
const JOINING_SAFETY = 2;
/** The same for arrivals during a batch, which cannot be stopped any more. */
const COMING_SAFETY = 4;
/** Least saving of machine time that makes waiting worthwhile, as a share of the time needed without waiting. */
const WORTH_WAITING = 0.05;

/** Lowest share of the throughput at which a batch may run to answer its first request in time. */
const ENOUGH_THROUGHPUT = 0.95;

/** State of the queue when an instance could take a batch. */
export interface WaitingWork {
  /** Rows in the queue, at least one. */
  readonly rows: number;
  /** Milliseconds that the oldest request has waited. */
  readonly waitedMs: number;
  /** Milliseconds until the answer to the first request is due. */
  readonly answerInMs: number;
  readonly arrivals: {
    readonly rowsPerMs: number;
    /** Variance of the rows that arrive in a time divided by their mean: 1 for independent requests. */
    readonly dispersion: number;
  };
  /** Milliseconds until an instance other than the one for this batch is idle; 0 if one is idle now. */
  readonly nextIdleMs: number;
  readonly curve: DurationCurve;
  /** Share of the possible wait to use, from 0 to 1. */
  readonly patience: number;
}

/** Decision about the waiting requests. */
export interface BatchPlan {
  /** Most rows in a batch. */
  readonly maxRows: number;
  /** Milliseconds after which the batch starts; it starts earlier with `enoughRows`, and 0 is now. */
  readonly waitMs: number;
  readonly enoughRows: number;
}

/**
 * Decides when the next batch starts, and how large it may be.
 *
 * ```
 *  oldest request                  start              answer wanted
 *       |--- waits, others join it ---|---- the batch -----|
 *                                     |-- who comes now waits for it --|---- the next batch ----|
 * ```
 *
 * Waiting as long as the fixed time of a batch costs nothing: a separate batch for the requests that join meanwhile
 * would take as long. Longer waits need room: requests that arrive while the batch runs must also be answered in time.
 * No wait is longer than the first request can afford. A wait begins only if it is expected to save enough machine
 * time.
 */
export function planBatch(work: WaitingWork, rules: AdaptiveRules): BatchPlan {
  const { curve, rows, waitedMs, patience, arrivals } = work;
  const maxRows = rowsInTime(work, largestBatch(curve, rules));
  const atOnce: BatchPlan = { maxRows, waitMs: 0, enoughRows: rows };
  if (rows >= maxRows) return atOnce;
  const longestMs = longestWaitMs(work, rules, JOINING_SAFETY);
  const freeMs = Math.min(curve.fixedMs - waitedMs, longestWaitMs(work, rules, 0));
  const room = Math.min(maxRows, rowsThatLeaveRoom(work, rules));
  const roomyMs = rows < room ? patience * (waitedMs + longestMs) - waitedMs : 0;
  const waitMs = Math.max(freeMs, roomyMs);
  if (waitMs <= 0) return atOnce;
  const enoughRows = roomyMs > freeMs ? room : maxRows;
  const joining = Math.min(arrivals.rowsPerMs * waitMs, enoughRows - rows);
  const savedMs = joining * curve.fixedMs;
  const otherwiseMs = expectedMs(curve, rows) + joining * expectedMs(curve, 1);
  return savedMs < WORTH_WAITING * otherwiseMs ? atOnce : { maxRows, waitMs, enoughRows };
}

/** Rows of a smaller batch, with which the first request is in time at little cost of throughput. */
function rowsInTime({ curve, rows, answerInMs }: WaitingWork, largest: number): number {
  const inTime = Math.floor((answerInMs - curve.fixedMs) / curve.perRowMs);
  if (!(inTime >= 1 && inTime < largest)) return largest;
  const otherwise = Math.min(rows, largest);
  const throughput = inTime / expectedMs(curve, inTime);
  return throughput >= (ENOUGH_THROUGHPUT * otherwise) / expectedMs(curve, otherwise) ? inTime : largest;
}

/**
 * Longest possible wait of the first request. Requests that join meanwhile make its batch longer.
 *
 * @param joiningSafety deviations by which more requests may join than expected
 */
function longestWaitMs(work: WaitingWork, { targetLatencyMs }: AdaptiveRules, joiningSafety: number): number {
  const { curve, rows, answerInMs, arrivals } = work;
  const safety = 1 + DURATION_SAFETY * curve.spread;
  const joinMs = Math.max(0, answerInMs - safety * expectedMs(curve, rows));
  const unforeseen = joiningSafety * Math.sqrt(arrivals.dispersion * arrivals.rowsPerMs * joinMs);
  // Timers are up to a millisecond late.
  const lateTimerMs = Math.min(1, targetLatencyMs / 20);
  const slackMs = answerInMs - safety * expectedMs(curve, rows + unforeseen) - lateTimerMs;
  return slackMs / (1 + safety * curve.perRowMs * arrivals.rowsPerMs);
}

/** The largest batch that leaves requests which arrive while it runs enough time for a batch of their own. */
function rowsThatLeaveRoom(work: WaitingWork, rules: AdaptiveRules): number {
  const { curve, arrivals, nextIdleMs } = work;
  const { targetLatencyMs, maxBatchSize } = rules;
  if (nextIdleMs <= 0) return maxBatchSize;
  const safety = 1 + DURATION_SAFETY * curve.spread;
  const leavesRoom = (rows: number): boolean => {
    const busyMs = Math.min(expectedMs(curve, rows), nextIdleMs);
    const coming = arrivals.rowsPerMs * busyMs;
    const most = coming + COMING_SAFETY * Math.sqrt(arrivals.dispersion * coming);
    return busyMs + safety * expectedMs(curve, most) <= targetLatencyMs;
  };
  let least = 0;
  let most = maxBatchSize;
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if (leavesRoom(middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}
