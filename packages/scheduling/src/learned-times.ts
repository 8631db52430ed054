import type { InferenceRequest, InstanceGroup, ModelInstance, Payload } from "@tritonjs/core/extension";

/** Number of observed batches before durations are predicted. */
export const ENOUGH_OBSERVATIONS = 5;
/** Weight of the curve beside the observations of one size. */
const CURVE_WEIGHT = 2;
/** Smallest step with which the duration of one size is learnt: about the last 20 batches of the size count. */
const SIZE_STEP = 0.05;
/** A batch is planned to last this many usual deviations longer than expected. */
const SAFETY = 1.5;
/** The same for batches that need not be that large to keep up with the arrivals. */
const MORE_SAFETY = 3;
/** Share of its rows for each millisecond that a batch keeps when it is made smaller for more safety. */
const KEPT_YIELD = 0.8;
/** The same for batches towards a target, where smaller ones keep a smaller share of the rate. */
const LESS_SAFETY = 0.5;
const KEPT_RATE = 0.99;
/** A batch that exceeds its expected time counts as nearly done: this share of its time is left. */
const OVERRUN_LEFT = 0.02;

interface Running {
  readonly times: InstanceTimes;
  readonly rows: number;
  readonly startedAt: number;
}

function isOpen(
  { cancelReason, deadline = Number.POSITIVE_INFINITY }: InferenceRequest,
  now: number,
): boolean {
  return cancelReason === undefined && now < deadline;
}

/**
 * Learns how long batches take, for each instance and each batch size, and forecasts when the instances are idle.
 *
 * ```
 * started, ended --> InstanceTimes: curve of all sizes, corrected by what single sizes took
 *                        |
 *                        +--> expectedMs, plannedMs (with the usual deviation), largestWithin
 * ```
 *
 * An instance that is new is predicted by the others of its kind.
 */
export class LearnedTimes {
  readonly #times = new WeakMap<ModelInstance, InstanceTimes>();
  readonly #byKind = new Map<string, InstanceTimes>();
  readonly #running = new Map<Payload, Running>();
  /** When a batch last ended, in milliseconds on the model's clock. */
  lastEnd = Number.NEGATIVE_INFINITY;

  /** @param hasTarget true if all requests have one limit, a target latency */
  constructor(
    private readonly instances: InstanceGroup,
    private readonly maxRows: number,
    private readonly hasTarget = false,
  ) {}

  started(instance: ModelInstance, payload: Payload, now: number): void {
    // A batch does not run if the time of all its requests is over.
    if (!payload.requests.some((request) => isOpen(request, now))) return;
    this.#running.set(payload, { times: this.#ownOf(instance), rows: payload.batchSize, startedAt: now });
  }

  /** @returns milliseconds that the batch took, if its start is known */
  ended(instance: ModelInstance, payload: Payload, now: number): number | undefined {
    const running = this.#running.get(payload);
    if (running === undefined) return undefined;
    this.#running.delete(payload);
    this.lastEnd = now;
    const { times, rows, startedAt } = running;
    times.learn(rows, now - startedAt);
    if (times.known) this.#byKind.set(instance.placement.kind, times);
    return now - startedAt;
  }

  /** Times of the instance that takes the next batch; undefined while too little is known. */
  get next(): InstanceTimes | undefined {
    let idlest: ModelInstance | undefined;
    for (const instance of this.instances.serving) {
      if (instance.healthy && (idlest === undefined || instance.room > idlest.room)) idlest = instance;
    }
    return idlest && this.#timesOf(idlest);
  }

  /** Milliseconds until each healthy instance is idle, ascending. */
  idleInMs(now: number): readonly number[] {
    const all: number[] = [];
    for (const instance of this.instances.serving)
      if (instance.healthy) all.push(this.#idleIn(instance, now));
    return all.sort((a, b) => a - b);
  }

  #idleIn(instance: ModelInstance, now: number): number {
    if (instance.room > 0) return 0;
    let soonest = Number.POSITIVE_INFINITY;
    for (const payload of instance.atWork) {
      const running = this.#running.get(payload);
      const times = running && this.#timesOf(instance);
      if (running === undefined || times === undefined) continue;
      const elapsed = now - running.startedAt;
      soonest = Math.min(soonest, Math.max(times.expectedMs(running.rows) - elapsed, OVERRUN_LEFT * elapsed));
    }
    return soonest === Number.POSITIVE_INFINITY ? 0 : soonest;
  }

  #ownOf(instance: ModelInstance): InstanceTimes {
    let times = this.#times.get(instance);
    if (times === undefined) {
      times = new InstanceTimes(this.maxRows, this.hasTarget);
      this.#times.set(instance, times);
    }
    return times;
  }

  #timesOf(instance: ModelInstance): InstanceTimes | undefined {
    const own = this.#times.get(instance);
    return own?.known === true ? own : this.#byKind.get(instance.placement.kind);
  }
}

/** Times learned from the batches of one instance. Tables are by number of rows, and made when they are needed. */
export class InstanceTimes {
  #fit: DurationFit | undefined;
  /** Sum of the weights of the observations of a size. */
  readonly #seen: Float64Array;
  /** Duration of a size as a share of the duration on the curve. */
  readonly #ratio: Float64Array;
  readonly #expected: Float64Array;
  #spread = 0;
  /** Largest batch that has run. */
  #largest = 0;
  #stale = true;
  #best = 1;

  constructor(
    private readonly maxRows: number,
    private readonly hasTarget = false,
  ) {
    this.#seen = new Float64Array(maxRows + 1);
    this.#ratio = new Float64Array(maxRows + 1).fill(1);
    this.#expected = new Float64Array(maxRows + 1);
  }

  get known(): boolean {
    return this.#fit !== undefined && this.#fit.observations >= ENOUGH_OBSERVATIONS;
  }

  /** Typical relative deviation of a batch from its expected duration: 0.1 for one tenth. */
  get spread(): number {
    return this.#spread;
  }

  learn(rows: number, takenMs: number): void {
    const size = Math.min(rows, this.maxRows);
    let observedMs = takenMs;
    if (this.known) {
      const expected = this.expectedMs(rows);
      const surprise = takenMs / expected - 1;
      observedMs = Math.min(takenMs, expected * (1 + Math.max(LEAST_SURPRISE, 4 * this.#spread)));
      this.#spread += SPREAD_STEP * (Math.min(1, Math.abs(surprise)) - this.#spread);
    }
    const fit = learnDuration(this.#fit, rows, takenMs);
    this.#fit = fit;
    this.#largest = Math.max(this.#largest, size);
    const ratio = observedMs / Math.max(expectedMs(fit, rows), SHORTEST_MS);
    const seen = ++this.#seen[size]!;
    this.#ratio[size]! += Math.max(SIZE_STEP, 1 / (seen + CURVE_WEIGHT)) * (ratio - this.#ratio[size]!);
    this.#stale = true;
  }

  /** Expected duration. More rows never take less time. */
  expectedMs(rows: number): number {
    if (this.#stale) this.#refresh();
    const known = this.#expected[Math.min(rows, this.maxRows)]!;
    return rows <= this.maxRows ? known : (known * rows) / this.maxRows;
  }

  /** Duration that is exceeded seldom. */
  plannedMs(rows: number): number {
    return (1 + SAFETY * this.#spread) * this.expectedMs(rows);
  }

  /** Duration that a batch seldom falls below. */
  leastMs(rows: number): number {
    return Math.max(0.5, 1 - SAFETY * this.#spread) * this.expectedMs(rows);
  }

  /**
   * The largest number of rows that take no longer than `leftMs`, as far as can be planned; at least 1.
   *
   * @param enough rows above which a batch must be in time with more safety, if smaller ones cost little more time
   */
  largestWithin(leftMs: number, enough = this.maxRows): number {
    const likely = this.#largestWithin(leftMs, SAFETY);
    if (this.hasTarget && enough === this.maxRows)
      return this.#keeping(KEPT_RATE, this.#largestWithin(leftMs, LESS_SAFETY), likely);
    if (likely <= enough) return likely;
    return this.#keeping(KEPT_YIELD, likely, Math.max(enough, this.#largestWithin(leftMs, MORE_SAFETY)));
  }

  /** The smallest batch, of at least some rows, that keeps a share of the throughput of a larger one. */
  #keeping(share: number, large: number, least: number): number {
    let rows = least;
    while (this.rowsPerMs(rows) < share * this.rowsPerMs(large)) rows++;
    return rows;
  }

  #largestWithin(leftMs: number, safety: number): number {
    if (this.#stale) this.#refresh();
    const limit = leftMs / (1 + safety * this.#spread);
    let least = 1;
    let most = this.maxRows;
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (this.#expected[middle]! <= limit) least = middle;
      else most = middle - 1;
    }
    return least;
  }

  /** Rows for each millisecond in batches of this size. */
  rowsPerMs(rows: number): number {
    return rows / this.expectedMs(rows);
  }

  /** The batch size with the most rows for each millisecond. */
  get best(): number {
    if (this.#stale) this.#refresh();
    return this.#best;
  }

  /**
   * The most rows for each millisecond that batches of any size reach. Infinite while only much smaller batches than the
   * best ones have run: then the curve is a guess.
   */
  get topRowsPerMs(): number {
    const { best } = this;
    return 2 * this.#largest >= best ? this.rowsPerMs(best) : Number.POSITIVE_INFINITY;
  }

  /**
   * Fills the table: the curve, times a ratio. The ratio of a size that has not run lies between those of the next
   * smaller and the next larger size that have.
   */
  #refresh(): void {
    this.#stale = false;
    const fit = this.#fit!;
    const seen = this.#seen;
    let below = 0;
    let above = 0;
    let longest = SHORTEST_MS;
    this.#best = 1;
    for (let size = 1; size <= this.maxRows; size++) {
      if (above < size) for (above = size; above <= this.maxRows && seen[above] === 0; ) above++;
      if (seen[size]! > 0) below = size;
      longest = Math.max(longest, expectedMs(fit, size) * this.#ratioBetween(size, below, above));
      this.#expected[size] = longest;
      if (size / longest > this.#best / this.#expected[this.#best]!) this.#best = size;
    }
  }

  #ratioBetween(size: number, below: number, above: number): number {
    const ratio = this.#ratio;
    if (below === size) return ratio[size]!;
    if (above > this.maxRows) return below === 0 ? 1 : ratio[below]!;
    if (below === 0) return ratio[above]!;
    const share = (size - below) / (above - below);
    return (1 - share) * ratio[below]! + share * ratio[above]!;
  }
}

/** Weight that older observations keep when a new one is added: about the last 50 batches count. */
const KEPT_DURATIONS = 0.98;
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
export interface DurationFit {
  /** Milliseconds that any batch takes, however small it is. */
  readonly fixedMs: number;
  /** Milliseconds that each row adds. */
  readonly perRowMs: number;
  /** Typical relative deviation of a batch from the curve: 0.1 for one tenth. */
  readonly spread: number;
  readonly observations: number;
  readonly weight: number;
  readonly meanRows: number;
  readonly meanMs: number;
  readonly rowsVariance: number;
  readonly covariance: number;
}

export function expectedMs(curve: DurationFit, rows: number): number {
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
  const weight = fit.weight * KEPT_DURATIONS + 1;
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

/** Rows that arrive, by the limit of their requests. */
interface LimitRate {
  readonly limitMs: number;
  readonly rowsPerMs: number;
}

/** Limits within a quarter of an octave count as one. */
const BINS_PER_OCTAVE = 4;
/** A bin with fewer rows than this in its window is left out. */
const LEAST_ROWS = 0.05;

/** Learns how many rows arrive, by the time that their requests leave for an answer. Old arrivals fade. */
export class ArrivalsByLimit {
  /** Time after which an arrival counts a third, in milliseconds. */
  windowMs = 100;
  readonly #bins = new Map<number, { limitMs: number; rowsPerMs: number; at: number }>();

  add(limitMs: number, rows: number, now: number): void {
    if (!(limitMs > 0) || limitMs === Number.POSITIVE_INFINITY) return;
    const key = Math.round(Math.log2(limitMs) * BINS_PER_OCTAVE);
    let bin = this.#bins.get(key);
    if (bin === undefined) {
      bin = { limitMs, rowsPerMs: 0, at: now };
      this.#bins.set(key, bin);
    }
    bin.limitMs += 0.05 * (limitMs - bin.limitMs);
    bin.rowsPerMs = this.#fade(bin, now) + rows / this.windowMs;
    bin.at = now;
  }

  rates(now: number): readonly LimitRate[] {
    const all: LimitRate[] = [];
    for (const bin of this.#bins.values()) {
      const rowsPerMs = this.#fade(bin, now);
      if (rowsPerMs * this.windowMs > LEAST_ROWS) all.push({ limitMs: bin.limitMs, rowsPerMs });
    }
    return all;
  }

  /** The limit that this share of the rows has, with its neighbours; undefined if no limit has so many. */
  mainLimit(share: number, now: number): number | undefined {
    const least = share * this.total(now);
    for (const [key, bin] of this.#bins) {
      let near = this.#fade(bin, now);
      for (const other of [this.#bins.get(key - 1), this.#bins.get(key + 1)]) {
        if (other !== undefined) near += this.#fade(other, now);
      }
      if (near > 0 && near >= least) return bin.limitMs;
    }
    return undefined;
  }

  /** Rows of all limits. */
  total(now: number): number {
    let sum = 0;
    for (const bin of this.#bins.values()) sum += this.#fade(bin, now);
    return sum;
  }

  #fade({ rowsPerMs, at }: { readonly rowsPerMs: number; readonly at: number }, now: number): number {
    return rowsPerMs * Math.exp((at - now) / this.windowMs);
  }
}
