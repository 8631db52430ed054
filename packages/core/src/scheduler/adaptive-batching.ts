import { errorWithoutStack } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { BatchingRules } from "./form-batch.js";
import {
  type AdaptiveRules,
  type DurationCurve,
  type DurationFit,
  expectedLatencyMs,
  expectedMs,
  learnDuration,
  planBatch,
} from "./plan-batch.js";
import type { PriorityQueue } from "./priority-queue.js";

/**
 * Batches towards a latency (`targetLatencyMs`). It learns about arrivals, running batches and their durations. From
 * these it computes the rules of the dynamic batcher anew each time, and refuses requests that would be answered too
 * late.
 *
 * ```
 * request --admit--> queue --rules--> formBatch --> payload --> instance
 *            ^                 ^                                    |
 *            +-- expected latency, plan <-- durations, lateness ----+
 * ```
 */
export class AdaptiveBatching {
  readonly #target: AdaptiveRules;
  readonly #arrivals: ArrivalRate;
  readonly #batches: RunningBatches;
  #punctuality = UNTRIED;

  constructor(target: AdaptiveRules, instances: InstanceGroup) {
    this.#target = target;
    this.#arrivals = new ArrivalRate(target.targetLatencyMs / 2);
    this.#batches = new RunningBatches(instances);
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#batches.start(instance, payload, now);
  }

  ended(payload: Payload, now: number): void {
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
  admit(request: InferenceRequest, queue: PriorityQueue, now: number): void {
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

  /** The rules for the next batch. While too little is known, they are the given ones. */
  rules(queue: PriorityQueue, given: BatchingRules, now: number): BatchingRules {
    const outlook = this.#batches.outlook(now);
    if (outlook === undefined) return given;
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
    return {
      ...given,
      maxBatchSize: maxRows,
      preferredBatchSizes: [waitMs > 0 ? enoughRows : maxRows],
      maxQueueDelayMs: waitMs > 0 ? now + waitMs - oldest : 0,
    };
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

/** Number of observed batches of a kind of instance before its durations are predicted. */
const ENOUGH_OBSERVATIONS = 5;
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
const KEEP = 0.975;
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

  /** Counts rows that arrive now. */
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
      this.#weight = this.#weight * KEEP + 1;
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
