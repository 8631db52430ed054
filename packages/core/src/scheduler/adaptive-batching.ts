import { errorWithoutStack } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { BatchingRules, BatchPlan, BatchPlanner } from "./form-batch.js";
import {
  type DurationCurve,
  type DurationFit,
  ENOUGH_OBSERVATIONS,
  expectedMs,
  learnDuration,
} from "./learned-times.js";
import type { PriorityQueue } from "./priority-queue.js";

/**
 * Batches towards a latency (`targetLatencyMs`). It learns about arrivals, running batches and their durations. From
 * these it computes the rules of the dynamic batcher anew each time, and refuses requests that would be answered too
 * late.
 *
 * ```
 * request --admit--> queue --plan--> formBatch --> payload --> instance
 *            ^                ^                                    |
 *            +-- expected latency <--- durations, lateness ----------+
 * ```
 */
export class AdaptiveBatching implements BatchPlanner {
  readonly #target: AdaptiveRules;
  readonly #queue: PriorityQueue;
  readonly #arrivals: ArrivalRate;
  readonly #batches: RunningBatches;
  #punctuality = UNTRIED;

  constructor(target: AdaptiveRules, queue: PriorityQueue, instances: InstanceGroup) {
    this.#target = target;
    this.#queue = queue;
    this.#arrivals = new ArrivalRate(target.targetLatencyMs / 2);
    this.#batches = new RunningBatches(instances);
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#batches.start(instance, payload, now);
  }

  ended(_instance: ModelInstance, payload: Payload, now: number): void {
    this.#batches.end(payload, now);
    const { requests } = payload;
    let late = 0;
    for (const request of requests) if (now > this.#latest(request)) late++;
    this.#punctuality = punctualityAfterBatch(this.#punctuality, late, requests.length - late);
  }

  /**
   * Counts a request that arrives, and refuses it if its answer would be late. A request that finds an idle instance
   * and an empty queue is always admitted: a later retry would not help, and expectations have to be tested.
   *
   * @throws TritonError UNAVAILABLE with `retryAfterMs` when the request could not be answered in time.
   */
  admit(request: InferenceRequest, now: number): void {
    const queue = this.#queue;
    this.#arrivals.add(request.rows, now);
    const outlook = this.#batches.outlook(now);
    if (outlook === undefined || (queue.size === 0 && outlook.idleInMs[0] === 0)) return;
    const allowedMs = this.#latest(request) - now;
    const { rows } = request;
    const { caution } = this.#punctuality;
    const rowsAhead = queue.rowsAhead(request);
    const rowsPerMs = this.#arrivals.rowsPerMs(now);
    const { idleInMs, curve } = outlook;
    const ahead = { rowsAhead, rows, idleInMs, curve, rowsPerMs, caution };
    const expectedMs = expectedLatencyMs(ahead, this.#target);
    if (expectedMs <= allowedMs) return;
    this.#punctuality = afterRefusal(this.#punctuality);
    const retryAfterMs = Math.max(1, Math.ceil(expectedMs - allowedMs));
    throw errorWithoutStack(
      "UNAVAILABLE",
      `${request.logPrefix}Request for model '${request.modelName}' was refused: expected an answer within ` +
        `${Math.floor(allowedMs)} ms, got an estimate of ${Math.ceil(expectedMs)} ms`,
      { reason: "DEADLINE_TOO_CLOSE", retryAfterMs },
    );
  }

  /** Plans the next batch. While too little is known, its rules are the given ones. */
  plan(given: BatchingRules, now: number): BatchPlan {
    const queue = this.#queue;
    const outlook = this.#batches.outlook(now);
    if (outlook === undefined) return { view: queue, rules: given };
    const { maxBatchSize, targetLatencyMs } = this.#target;
    let rows = 0;
    let oldest = Number.POSITIVE_INFINITY;
    let answerBy = Number.POSITIVE_INFINITY;
    for (let next = queue.head; next !== undefined && rows < maxBatchSize; next = queue.after(next)) {
      rows += next.rows;
      const start = startOf(next);
      oldest = Math.min(oldest, start);
      answerBy = Math.min(answerBy, start + targetLatencyMs, this.#latest(next));
    }
    const { maxRows, waitMs, enoughRows } = planBatch(
      {
        rows,
        waitedMs: now - oldest,
        answerInMs: answerBy - now,
        arrivals: { rowsPerMs: this.#arrivals.rowsPerMs(now), dispersion: this.#arrivals.dispersion },
        nextIdleMs: outlook.idleInMs[1] ?? Number.POSITIVE_INFINITY,
        curve: outlook.curve,
        patience: Math.max(0, this.#punctuality.patience),
      },
      this.#target,
    );
    const rules: BatchingRules = {
      ...given,
      maxBatchSize: maxRows,
      preferredBatchSizes: [waitMs > 0 ? enoughRows : maxRows],
      maxQueueDelayMs: waitMs > 0 ? now + waitMs - oldest : 0,
    };
    return { view: queue, rules };
  }

  /** Time from which the answer to a request is late. Its own deadline or timeout counts, if it has one. */
  #latest(request: InferenceRequest): number {
    if (request.deadline !== undefined) return request.deadline;
    const { queueTimeoutMicroseconds: own } = request;
    return startOf(request) + (own > 0 ? own / 1000 : this.#target.targetLatencyMs);
  }
}

function startOf(request: InferenceRequest): number {
  return request.batcherStart ?? request.queueStart;
}

/** A batch that exceeds its expected time counts as nearly done: this share of its time is left. */
const OVERRUN_LEFT = 0.02;

interface Running {
  readonly instance: ModelInstance;
  readonly rows: number;
  readonly startedAt: number;
}

/** Forecast of when the instances are idle, and of the duration of the next batch. */
interface InstanceOutlook {
  /** Milliseconds until each instance is idle, ascending. */
  readonly idleInMs: readonly number[];
  /** Curve of the instance that is idle first. */
  readonly curve: DurationCurve;
}

/** Tracks the running batches, and learns a curve for each kind of instance from earlier ones. */
class RunningBatches {
  readonly #instances: InstanceGroup;
  readonly #fits = new Map<string, DurationFit>();
  readonly #running = new Map<Payload, Running>();

  constructor(instances: InstanceGroup) {
    this.#instances = instances;
  }

  start(instance: ModelInstance, payload: Payload, now: number): void {
    this.#running.set(payload, { instance, rows: payload.batchSize, startedAt: now });
  }

  end(payload: Payload, now: number): void {
    const running = this.#running.get(payload);
    if (running === undefined) return;
    this.#running.delete(payload);
    const { kind } = running.instance.placement;
    this.#fits.set(kind, learnDuration(this.#fits.get(kind), running.rows, now - running.startedAt));
  }

  /** The forecast; undefined while too little is known, or no instance is healthy. */
  outlook(now: number): InstanceOutlook | undefined {
    const idle: { readonly inMs: number; readonly fit: DurationFit | undefined }[] = [];
    for (const instance of this.#instances.serving) {
      if (!instance.healthy) continue;
      idle.push({ inMs: this.#idleIn(instance, now), fit: this.#fits.get(instance.placement.kind) });
    }
    idle.sort((a, b) => a.inMs - b.inMs);
    const curve = idle[0]?.fit;
    if (curve === undefined || curve.observations < ENOUGH_OBSERVATIONS) return undefined;
    return { idleInMs: idle.map(({ inMs }) => inMs), curve };
  }

  #idleIn(instance: ModelInstance, now: number): number {
    if (instance.room > 0) return 0;
    const fit = this.#fits.get(instance.placement.kind);
    let soonest = Number.POSITIVE_INFINITY;
    for (const payload of instance.atWork) {
      const running = this.#running.get(payload);
      if (running === undefined || fit === undefined) continue;
      const elapsed = now - running.startedAt;
      soonest = Math.min(soonest, Math.max(expectedMs(fit, running.rows) - elapsed, OVERRUN_LEFT * elapsed));
    }
    return soonest === Number.POSITIVE_INFINITY ? 0 : soonest;
  }
}

/** Weight that older windows keep when a new one is counted: about the last 40 windows count. */
const KEPT_ARRIVALS = 0.975;
/** Number of empty windows after which the rate is forgotten. */
const FORGOTTEN = 200;

/** Rate and unevenness of arriving rows, counted in windows of time. */
export class ArrivalRate {
  readonly #windowMs: number;
  #windowEnd: number | undefined;
  #count = 0;
  #weight = 0;
  #mean = 0;
  #variance = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(rows: number, now: number): void {
    this.#roll(now);
    this.#count += rows;
  }

  /** Rows per millisecond; 0 while the rate is unknown. */
  rowsPerMs(now: number): number {
    this.#roll(now);
    return this.#mean / this.#windowMs;
  }

  /** Variance of the rows of a window divided by their mean: 1 for independent arrivals, more for bursts. */
  get dispersion(): number {
    return this.#mean > 0 ? Math.max(1, this.#variance / this.#mean) : 1;
  }

  #roll(now: number): void {
    if (this.#windowEnd === undefined || now - this.#windowEnd > FORGOTTEN * this.#windowMs) {
      this.#windowEnd = now + this.#windowMs;
      this.#count = 0;
      this.#weight = 0;
      this.#mean = 0;
      this.#variance = 0;
    }
    while (now >= this.#windowEnd) {
      this.#weight = this.#weight * KEPT_ARRIVALS + 1;
      const step = 1 / this.#weight;
      const off = this.#count - this.#mean;
      this.#mean += step * off;
      this.#variance = (1 - step) * (this.#variance + step * off * off);
      this.#count = 0;
      this.#windowEnd += this.#windowMs;
    }
  }
}

/** Share of late answers that waiting for more requests may cost. */
const LATE_FROM_WAITING = 0.002;
const PATIENCE_STEP = 0.1;
/** Share of late answers above which fewer requests are admitted. */
const LATE_FROM_ADMITTING = 0.01;
const CAUTION_STEP = 0.01;

/** Feedback from late answers: how far expectations held, and the settings that follow from it. */
interface Punctuality {
  /** Share of the possible wait that is used. Below 0 it has to recover first. */
  readonly patience: number;
  /** Caution before a request is admitted, from 0 to 1. */
  readonly caution: number;
}

/** Initial state, before any batch has run. */
export const UNTRIED: Punctuality = { patience: 1, caution: 0 };

/**
 * Updates the state after a batch with these numbers of late and timely answers. A late answer is a step, a timely one
 * a small step back. So both values settle where the share of late answers is the allowed one.
 */
export function punctualityAfterBatch(
  { patience, caution }: Punctuality,
  late: number,
  inTime: number,
): Punctuality {
  return {
    patience: within(-1, patience + PATIENCE_STEP * (LATE_FROM_WAITING * inTime - late)),
    caution: within(0, caution + CAUTION_STEP * (late - LATE_FROM_ADMITTING * inTime)),
  };
}

/** Updates the state after a refusal: machine time is scarce, so no instance should be idle. */
export function afterRefusal({ patience, caution }: Punctuality): Punctuality {
  return { patience: Math.min(patience, Math.max(0, patience - PATIENCE_STEP)), caution };
}

function within(least: number, value: number): number {
  return Math.min(1, Math.max(least, value));
}

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
  readonly rows: number;
  readonly waitedMs: number;
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

interface WaitPlan {
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
export function planBatch(work: WaitingWork, rules: AdaptiveRules): WaitPlan {
  const { curve, rows, waitedMs, patience, arrivals } = work;
  const maxRows = rowsInTime(work, largestBatch(curve, rules));
  const atOnce: WaitPlan = { maxRows, waitMs: 0, enoughRows: rows };
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

const ENOUGH_OF_LARGEST = 0.99;
/** Smallest batch size that is chosen for throughput: equal sizes would teach nothing about the curve. */
const LEAST_ROWS = 4;

interface AdaptiveRules {
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

export interface WorkAhead {
  readonly rowsAhead: number;
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
