import type { InferenceRequest, LateCause, Payload } from "@tritonjs/core/extension";
import { callerOf } from "./fair-shares.js";
import type { InstanceTimes, LearnedTimes } from "./learned-times.js";
import { dueOf, urgencyOf } from "./urgency.js";

/** Batches that are remembered. */
const REMEMBERED = 256;
/** Time after which an arrival counts a third of its load, in milliseconds. */
const LOAD_WINDOW_MS = 1000;
/** Load from which on a model counts as overloaded. */
const OVERLOAD = 1.02;
/** A batch is slow if it takes this much longer than expected, or four times the usual deviation. */
const SLOW_SHARE = 0.3;
/** Share of a wait from which on something is its cause. */
const MOST = 0.5;

/** Requests that wait, in the order in which they run. */
interface WaitingRequests {
  classLevelOf(request: InferenceRequest): number;
  countBefore(order: number): number;
  dated(index: number): InferenceRequest;
}

/** A batch that has run, or runs. */
interface RunBatch {
  /** Both are dropped once it has ended: a model must not keep what it has answered. */
  requests: readonly InferenceRequest[];
  payload: Payload | undefined;
  /** The class of each request. */
  readonly classes: readonly string[];
  readonly times: InstanceTimes | undefined;
  readonly rows: number;
  readonly startedAt: number;
  /** Expected duration when it began; undefined while too little was known. */
  readonly expectedMs: number | undefined;
  endedAt: number;
}

/**
 * Finds out why a request is late. It compares the request with what was expected of its batch, and looks at what ran
 * while it waited.
 *
 * ```
 * arrival ---- wait: what ran meanwhile? ---- start ---- batch: as large and as slow as expected? ---- end
 * ```
 */
export class LateCauses {
  readonly #batches: RunBatch[] = [];
  /** Rows for each millisecond that arrived lately. */
  #rowsPerMs = 0;
  #arrivedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly times: LearnedTimes,
    private readonly queue: WaitingRequests,
  ) {}

  arrived({ rows }: InferenceRequest, now: number): void {
    this.#rowsPerMs = this.#rate(now) + rows / LOAD_WINDOW_MS;
    this.#arrivedAt = now;
  }

  started(payload: Payload, now: number): void {
    const times = this.times.next;
    const rows = payload.batchSize;
    this.#batches.push({
      times,
      rows,
      requests: payload.requests,
      payload,
      classes: payload.requests.filter(({ ready }) => ready).map((request) => this.#classOf(request)),
      startedAt: now,
      expectedMs: times?.expectedMs(rows),
      endedAt: Number.POSITIVE_INFINITY,
    });
    if (this.#batches.length > REMEMBERED) this.#batches.shift();
  }

  ended(payload: Payload, now: number): void {
    const batch = this.#batches.findLast((one) => one.payload === payload);
    if (batch === undefined) return;
    batch.endedAt = now;
    batch.requests = [];
    batch.payload = undefined;
  }

  /**
   * The cause of a request that is late, or refused because it would be.
   *
   * @param leastRows rows of the smallest batch that it can run in
   */
  causeOf(request: InferenceRequest, now: number, leastRows = request.rows): LateCause {
    const batch = this.#batches.findLast(({ requests }) => requests.includes(request));
    const times = batch === undefined ? this.times.next : batch.times;
    if (times === undefined || (batch !== undefined && batch.expectedMs === undefined)) return "cold";
    const { queueStart } = request;
    const due = dueOf(request);
    const aloneMs = times.expectedMs(leastRows);
    // Too little time for a batch of its own, even without a queue: the model is slow for such a limit.
    if (queueStart + aloneMs > due) return "slow_model";
    if (batch?.expectedMs !== undefined) {
      const { startedAt, expectedMs, endedAt } = batch;
      const tookMs = Math.min(endedAt, now) - startedAt;
      const isSlow = tookMs > (1 + Math.max(SLOW_SHARE, 4 * times.spread)) * expectedMs;
      if (isSlow && startedAt + expectedMs <= due) return "slow_model";
      if (startedAt + aloneMs <= due) return startedAt + expectedMs > due ? "batch" : "slow_model";
    }
    return this.#causeOfWait(request, batch?.startedAt, now, times);
  }

  /**
   * Finds the cause of a wait: until the batch of the request began, or until it would, for a request that is refused.
   *
   * @param startedAt when its batch began; undefined if there was none
   */
  #causeOfWait(
    request: InferenceRequest,
    startedAt: number | undefined,
    now: number,
    times: InstanceTimes,
  ): LateCause {
    const { queueStart, rows } = request;
    const due = dueOf(request);
    const until = startedAt ?? now;
    const meanwhile = this.#batches.filter((one) => one.startedAt < until && one.endedAt > queueStart);
    const count = Math.max(1, this.times.idleInMs(now).length);
    const own = this.#classOf(request);
    let [waitMs, busyMs, otherMs, excessMs] = [until - queueStart, 0, 0, 0];
    const add = (ms: number, classes: readonly string[]): void => {
      busyMs += ms / count;
      otherMs += (ms * classes.filter((one) => one !== own).length) / (count * Math.max(1, classes.length));
    };
    for (const batch of meanwhile) {
      add(Math.min(batch.endedAt, until) - Math.max(batch.startedAt, queueStart), batch.classes);
      excessMs += excessOf(batch, until);
    }
    const running = this.#batches.filter(({ endedAt }) => endedAt === Number.POSITIVE_INFINITY);
    const ahead = startedAt === undefined ? this.queue.countBefore(urgencyOf(request).order) : 0;
    if (startedAt === undefined) {
      const comingMs = [
        ...running.map((batch) => Math.max(0, batch.startedAt + (batch.expectedMs ?? 0) - now)),
        ...Array.from({ length: ahead }, () => 1 / times.topRowsPerMs),
      ];
      running.forEach(({ classes }, i) => void add(comingMs[i]!, classes));
      for (let i = 0; i < ahead; i++)
        add(comingMs[running.length + i]!, [this.#classOf(this.queue.dated(i))]);
      waitMs += comingMs.reduce((sum, ms) => sum + ms, 0) / count;
    }
    if (excessMs > MOST * waitMs) return "slow_model";
    if (this.#rate(now) > OVERLOAD * count * times.topRowsPerMs) return "overload";
    if (waitMs > 0 && busyMs < MOST * waitMs) return "other_model";
    // It waited for one batch. After a batch of one row, it would have been in time.
    const before = new Set([...meanwhile, ...(startedAt === undefined ? running : [])]);
    const [only] = before;
    const isAlone = before.size === 1 && ahead === 0 && only!.rows > 1;
    if (isAlone && only!.startedAt + times.expectedMs(1) + times.expectedMs(rows) <= due) return "batch";
    return busyMs > 0 && otherMs > MOST * busyMs ? "other_class" : "queue";
  }

  #classOf(request: InferenceRequest): string {
    return classOf(request, this.queue.classLevelOf(request));
  }

  #rate(now: number): number {
    return this.#rowsPerMs * Math.exp((this.#arrivedAt - now) / LOAD_WINDOW_MS);
  }
}

/** Milliseconds that a slow batch took longer than expected until a time; 0 for one that was not slow. */
function excessOf({ expectedMs, startedAt, endedAt, times }: RunBatch, until: number): number {
  if (expectedMs === undefined || times === undefined) return 0;
  const tookMs = Math.min(endedAt, until) - startedAt;
  return tookMs > (1 + Math.max(SLOW_SHARE, 4 * times.spread)) * expectedMs ? tookMs - expectedMs : 0;
}

/** Requests of one caller and level are a class. */
function classOf(request: InferenceRequest, level: number): string {
  return `${level} ${urgencyOf(request)?.share?.account.name ?? callerOf(request, "caller")}`;
}
