import type { Payload } from "../batch/payload.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import { PATIENCE_MS } from "../instance/machine-plan.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { LateCause } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { hopelessError, STALE_MS } from "./deadline-batching.js";
import type { BatchingRules, BatchPlan, BatchPlanner } from "./form-batch.js";
import { LaneCauses } from "./lane-causes.js";
import type { ForeseenWork, LearnedWork } from "./learned-work.js";
import type { QueuedRequestView } from "./priority-queue.js";
import type { ShortestFirst } from "./shortest-first.js";
import type { UrgencyQueue } from "./urgency-queue.js";

/** A request without a deadline that has waited for {@link PATIENCE_MS} gets every fourth turn. */
const PATIENT_TURNS = 4;

/**
 * The order of requests that run by themselves, several at a time in each instance: the texts of continuous batching. A
 * lane is a place where a request runs, and is free when the text has ended.
 *
 * ```
 * request --admit--> UrgencyQueue --plan--> the next request --> a free lane
 *              |                    |                                |
 *           no hope              no hope <------ LearnedWork --------+
 * ```
 *
 * With deadlines, the earliest is next, and requests without hope are refused. Otherwise the shortest request is next,
 * unless one has waited too long.
 */
export class LaneBatching implements BatchPlanner {
  readonly #queue: UrgencyQueue;
  readonly #instances: InstanceGroup;
  readonly #work: LearnedWork;
  readonly #causes: LaneCauses;
  readonly #shortest: ShortestFirst | undefined;
  readonly #running = new Map<Payload, { readonly work: ForeseenWork; readonly startedAt: number }>();
  #lastEnd = Number.NEGATIVE_INFINITY;
  #turn = 0;
  readonly #hasDeadlines: boolean;

  /**
   * @param shortest order of the queue if short requests go first
   * @param hasDeadlines whether requests without hope are refused
   */
  constructor(
    queue: UrgencyQueue,
    instances: InstanceGroup,
    work: LearnedWork,
    shortest: ShortestFirst | undefined,
    hasDeadlines: boolean,
  ) {
    this.#hasDeadlines = hasDeadlines;
    this.#queue = queue;
    this.#instances = instances;
    this.#work = work;
    this.#causes = new LaneCauses(queue, work);
    this.#shortest = shortest;
  }

  started(_instance: ModelInstance, payload: Payload, now: number): void {
    const [request] = payload.requests;
    if (request === undefined) return;
    const work = this.#work.of(request);
    this.#running.set(payload, { work, startedAt: now });
    this.#causes.started(payload, request, work.expectedMs, now);
  }

  ended(_instance: ModelInstance, payload: Payload, now: number): void {
    const running = this.#running.get(payload);
    this.#running.delete(payload);
    this.#causes.ended(payload, now);
    const [request] = payload.requests;
    if (running === undefined || request?.cancelReason !== undefined) return;
    this.#lastEnd = now;
    running.work.took(now - running.startedAt);
  }

  /**
   * Refuses a request whose answer cannot be in time even if it is short.
   *
   * @throws TritonError UNAVAILABLE with `retryAfterMs`
   */
  admit(request: InferenceRequest, now: number): void {
    const { lanes, free } = this.#lanes();
    const laneFreeMs = free > this.#queue.size ? 0 : this.#nextEndMs(now);
    this.#shortest?.noteWait(laneFreeMs, lanes);
    const { expectedMs: ownMs, leastMs } = this.#work.of(request);
    request.batchCost = ownMs;
    this.#causes.arrived(ownMs, now);
    if (request.due === Number.POSITIVE_INFINITY || !this.#mayRefuse(now, free)) return;
    const expectedMs = laneFreeMs + this.#msAhead(request) / lanes + leastMs;
    if (now + expectedMs > request.due) this.#refuse(request, now, expectedMs);
  }

  lateCause(request: InferenceRequest, now: number): LateCause {
    return this.#causes.causeOf(request, this.#lanes().lanes, now);
  }

  /** The request that runs next, alone. Requests without hope are ended. */
  plan(given: BatchingRules, now: number): BatchPlan | undefined {
    this.#queue.takeExpired();
    const mayRefuse = this.#mayRefuse(now, this.#lanes().free);
    for (;;) {
      const next = this.#next(now);
      if (next === undefined) return undefined;
      const leastMs = mayRefuse && next.due < Number.POSITIVE_INFINITY ? this.#work.of(next).leastMs : 0;
      if (!mayRefuse || now + leastMs <= next.due) return { view: new OneRequest(next), rules: alone(given) };
      if (this.#queue.delays(next)) this.#queue.delay(next);
      else next.cancel(hopelessError(next, next.due - now, leastMs));
    }
  }

  #next(now: number): InferenceRequest | undefined {
    const queue = this.#queue;
    if (this.#shortest !== undefined) return this.#shortest.overdue(now) ?? queue.head;
    const patient = queue.patient.head;
    if (patient === undefined) return queue.head;
    this.#turn++;
    const waitedLong = now - patient.queueStart > PATIENCE_MS;
    return waitedLong && this.#turn % PATIENT_TURNS === 0 ? patient : queue.head;
  }

  /** Refuses a request, or lets it run after all others. */
  #refuse(request: InferenceRequest, now: number, expectedMs: number): void {
    if (!this.#queue.delays(request)) throw hopelessError(request, request.due - now, expectedMs);
    request.due = Number.POSITIVE_INFINITY;
  }

  /** Milliseconds until a running request is expected to end. */
  #nextEndMs(now: number): number {
    let soonest = Number.POSITIVE_INFINITY;
    for (const { work, startedAt } of this.#running.values()) {
      soonest = Math.min(soonest, Math.max(0, work.expectedMs - (now - startedAt)));
    }
    return soonest < Number.POSITIVE_INFINITY ? soonest : 0;
  }

  /** Milliseconds of work that runs before a request which is not in the queue yet. */
  #msAhead(request: InferenceRequest): number {
    let sum = 0;
    for (let i = this.#queue.countBefore(request.order) - 1; i >= 0; i--)
      sum += this.#queue.dated(i).batchCost;
    return sum;
  }

  /** Number of requests that may run at a time, and of those that could start now. */
  #lanes(): { readonly lanes: number; readonly free: number } {
    let [lanes, free] = [0, 0];
    for (const instance of this.#instances.serving) {
      if (!instance.healthy) continue;
      lanes += instance.atWork.length + instance.room;
      free += instance.room;
    }
    return { lanes: Math.max(1, lanes), free };
  }

  /** False while too little is known, and after a while without requests, because times may have changed. */
  #mayRefuse(now: number, free: number): boolean {
    const isStale = free > 0 && now - this.#lastEnd > STALE_MS;
    return this.#hasDeadlines && this.#work.known && !isStale;
  }
}

function alone(given: BatchingRules): BatchingRules {
  return { ...given, maxBatchSize: 1, preferredBatchSizes: [1], maxQueueDelayMs: 0 };
}

/** A queue of which one request is seen. */
class OneRequest implements QueuedRequestView {
  constructor(readonly head: InferenceRequest) {}

  after(): undefined {
    return undefined;
  }
}
