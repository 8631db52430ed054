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
