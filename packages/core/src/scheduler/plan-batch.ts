/** Batches are assumed to last this many usual deviations longer than expected. */
const DURATION_SAFETY = 2.5;
/** Arrivals during a wait are assumed to be this many deviations more than expected. */
const JOINING_SAFETY = 2;
/** The same for arrivals during a batch, which cannot be stopped any more. */
const COMING_SAFETY = 4;
/** Least saving of machine time that makes waiting worthwhile, as a share of the time needed without waiting. */
const WORTH_WAITING = 0.05;

/** Lowest share of the throughput at which a batch may run to answer its first request in time. */
const ENOUGH_IN_TIME = 0.95;

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
interface BatchPlan {
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
  return throughput >= (ENOUGH_IN_TIME * otherwise) / expectedMs(curve, otherwise) ? inTime : largest;
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

/** Share of the best throughput that suffices. */
const ENOUGH_OF_LARGEST = 0.99;
/** Smallest batch size that is chosen for throughput: equal sizes would teach nothing about the curve. */
const LEAST_ROWS = 4;

/** Settings from the configuration. */
export interface AdaptiveRules {
  readonly targetLatencyMs: number;
  readonly maxBatchSize: number;
}

/**
 * The largest batch size worth running. Under load, a request that just missed a batch waits for its end and then takes
 * as long again. So a batch may take half of the target. Among these sizes, a smaller one with nearly the best
 * throughput answers sooner.
 */
export function largestBatch(curve: DurationCurve, rules: AdaptiveRules): number {
  const { targetLatencyMs: target, maxBatchSize } = rules;
  const { fixedMs, perRowMs } = curve;
  const one = expectedMs(curve, 1);
  // The target cannot be met at all, so aim for the best throughput.
  if (one >= target) return maxBatchSize;
  const longestMs = one < target / 2 ? target / 2 : (one + target) / 2;
  const inTime = perRowMs > 0 ? Math.floor((longestMs - fixedMs) / perRowMs) : maxBatchSize;
  const largest = Math.max(1, Math.min(maxBatchSize, inTime));
  const throughput = (ENOUGH_OF_LARGEST * largest) / expectedMs(curve, largest);
  const enough = Math.ceil((throughput * fixedMs) / (1 - throughput * perRowMs));
  return Math.min(largest, Math.max(enough, LEAST_ROWS));
}

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

/** Weight that older observations keep when a new one is added: about the last 50 batches count. */
const KEEP = 0.98;
/** Number of observations after which the first ones, which are often slow, are ignored. */
const COLD_OBSERVATIONS = 20;
/** An outlier counts as at most this share above the expected duration, unless deviations are usual. */
const LEAST_SURPRISE = 0.5;
/** Step size with which the typical deviation is learnt. */
const SPREAD_STEP = 0.05;
/** Variance of batch sizes, relative to their mean, that is needed to trust a new slope. */
const SLOPE_PRIOR = 0.01;

/**
 * Shortest duration that a batch counts with. Deviations are relative, and the very first batches may take no time at
 * all.
 */
const SHORTEST_MS = 0.001;

/** Duration of a batch: `fixedMs + perRowMs * rows`. */
export interface DurationCurve {
  /** Milliseconds that any batch takes, however small it is. */
  readonly fixedMs: number;
  /** Milliseconds that each row adds. */
  readonly perRowMs: number;
  /** Typical relative deviation of a batch from the curve: 0.1 for one tenth. */
  readonly spread: number;
}

/** Learnt durations of batches: a curve, and the sums that it is fitted to. */
export interface DurationFit extends DurationCurve {
  readonly observations: number;
  readonly weight: number;
  readonly meanRows: number;
  readonly meanMs: number;
  readonly rowsVariance: number;
  readonly covariance: number;
}

/** Expected duration of a batch with this number of rows, in milliseconds. */
export function expectedMs(curve: DurationCurve, rows: number): number {
  return curve.fixedMs + curve.perRowMs * rows;
}

/**
 * Updates the fit with another batch: least squares with forgetting, robust against outliers.
 *
 * - An outlier is cut to the value that the usual deviation makes plausible. A lasting change soon becomes plausible.
 * - While all batches have one size, only the scale is learnt. The ratio of fixed to per-row time stays the same.
 * - The first batches are often slow. Much faster batches after them outweigh them.
 * - Neither part of the curve becomes negative.
 */
export function learnDuration(fit: DurationFit | undefined, rows: number, takenMs: number): DurationFit {
  const durationMs = Math.max(takenMs, SHORTEST_MS);
  if (fit === undefined) return firstFit(rows, durationMs);
  const expected = Math.max(expectedMs(fit, rows), SHORTEST_MS);
  const surprise = durationMs / expected - 1;
  const observed = Math.min(durationMs, expected * (1 + Math.max(LEAST_SURPRISE, 4 * fit.spread)));
  const weight = fit.weight * KEEP + 1;
  const wasCold = fit.observations < COLD_OBSERVATIONS && surprise < -LEAST_SURPRISE;
  const step = wasCold ? Math.max(0.5, 1 / weight) : 1 / weight;
  const rowsOff = rows - fit.meanRows;
  const msOff = observed - fit.meanMs;
  const meanRows = fit.meanRows + step * rowsOff;
  const meanMs = fit.meanMs + step * msOff;
  const rowsVariance = (1 - step) * (fit.rowsVariance + step * rowsOff * rowsOff);
  const covariance = (1 - step) * (fit.covariance + step * rowsOff * msOff);
  const prior = SLOPE_PRIOR * meanRows * meanRows;
  const priorSlope = (fit.perRowMs * meanMs) / Math.max(expectedMs(fit, meanRows), SHORTEST_MS);
  const slope = (covariance + prior * priorSlope) / (rowsVariance + prior);
  const perRowMs = Math.min(Math.max(0, slope), meanMs / meanRows);
  return {
    fixedMs: meanMs - perRowMs * meanRows,
    perRowMs,
    spread: fit.spread + SPREAD_STEP * (Math.min(1, Math.abs(surprise)) - fit.spread),
    observations: fit.observations + 1,
    weight,
    meanRows,
    meanMs,
    rowsVariance,
    covariance,
  };
}

/** First fit. A single batch says nothing about the slope, so half of its time counts as fixed. */
function firstFit(rows: number, durationMs: number): DurationFit {
  return {
    fixedMs: durationMs / 2,
    perRowMs: durationMs / 2 / rows,
    spread: 0,
    observations: 1,
    weight: 1,
    meanRows: rows,
    meanMs: durationMs,
    rowsVariance: 0,
    covariance: 0,
  };
}
