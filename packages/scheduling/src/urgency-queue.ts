import {
  type BatcherQueue,
  classLevelOf,
  type DeadlineQueue,
  freePlacesOf,
  type InferenceRequest,
  isBounded,
  type LevelStatus,
  LinkedList,
  levelOf,
  placesLeft,
  policyOf,
  type QueueTotals,
  type RequestHolder,
} from "@tritonjs/core/extension";
import { type ModelDynamicBatching, queueFullError, timeoutError } from "@tritonjs/protocol";
import { callerOf } from "./fair-shares.js";
import type { DefaultLimits } from "./settings.js";
import { dueOf, type Urgency, urgencyOf } from "./urgency.js";

/** An order of the requests in a queue other than that of their deadlines. It is told of each change. */
export interface RequestOrder {
  /** Name of the caller of a request. @default that of its header or parameter */
  nameOf?(request: InferenceRequest): string;
  /** Sets the `order` of a request that is not in the queue yet. Its `due` is known. */
  place(request: InferenceRequest): void;
  joined(request: InferenceRequest): void;
  /** A request leaves the queue to run. */
  ran(request: InferenceRequest): void;
  /** A request leaves the queue without having run. */
  left(request: InferenceRequest): void;
}

/**
 * Queue of a batcher with deadlines. Requests with a deadline are in the order of their deadlines, in one array. Those
 * without one, and those that outlived a timeout under the action DELAY, are in the order of arrival.
 *
 * ```
 * dated:   due 12.0 | due 12.5 | due 80.1 | ...     patient: first come | ...
 * ```
 *
 * Where another order is set, such as that of shares, all requests are in the array in that order.
 */
export class UrgencyQueue implements BatcherQueue, RequestHolder {
  /** Always false: a request that is handed over could not be overtaken any more. */
  readonly allowsPrefetch = false;
  readonly totals: QueueTotals = { size: 0, rows: 0 };
  readonly #expire = (request: InferenceRequest) => {
    request.queueDeadline = undefined;
    if (this.delays(request)) this.delay(request);
    else request.cancel(timeoutError());
    this.onExpired();
  };
  #expired = 0;
  readonly #bounded: boolean;
  /** A full queue has room for a caller that has had less than its share. */
  readonly hasLimits: boolean;
  #ticket = 0;
  /** Sorted by `order`, then by arrival, from `#first` on. */
  #dated: (InferenceRequest | undefined)[] = [];
  #first = 0;
  readonly patient = new LinkedList<InferenceRequest>();
  /** Number of requests by level, where levels have limits. */
  readonly #sizes = new Map<number, number>();

  /**
   * @param limits limits of requests that bring none
   * @param onExpired called after a timeout has changed the queue
   * @param rule order of the requests in place of that of their deadlines
   */
  constructor(
    private readonly batching: ModelDynamicBatching,
    private readonly deadlines: DeadlineQueue,
    private readonly limits: DefaultLimits | undefined,
    private readonly now: () => number,
    private readonly onExpired: () => void,
    private readonly rule?: RequestOrder,
  ) {
    this.#bounded = isBounded(batching);
    this.hasLimits = this.#bounded && rule === undefined;
  }

  /** Place of the first request in the order. */
  headOrder(): number {
    return this.datedCount > 0 ? urgencyOf(this.dated(0)).order : Number.POSITIVE_INFINITY;
  }

  /** The level that names the class of a request. */
  classLevelOf({ priority }: InferenceRequest): number {
    return classLevelOf(this.batching, priority);
  }

  /** True if the order is not that of deadlines. */
  get isFair(): boolean {
    return this.rule !== undefined;
  }

  get datedCount(): number {
    return this.#dated.length - this.#first;
  }

  /** The request with a deadline at a position in the order of deadlines. */
  dated(position: number): InferenceRequest {
    return this.#dated[this.#first + position]!;
  }

  /** The requests with a deadline from one position to before another. */
  datedFrom(from: number, to: number): InferenceRequest[] {
    return this.#dated.slice(this.#first + from, this.#first + to) as InferenceRequest[];
  }

  get head(): InferenceRequest | undefined {
    return this.datedCount > 0 ? this.dated(0) : this.patient.head;
  }

  after(request: InferenceRequest): InferenceRequest | undefined {
    if (this.#isPatient(request)) return request.next;
    const next = this.#indexOf(request) + 1;
    return next < this.#dated.length ? this.#dated[next] : this.patient.head;
  }

  get headPriority(): number {
    const { head } = this;
    return head === undefined ? 0 : levelOf(this.batching, head.priority);
  }

  get levels(): LevelStatus[] {
    const found = new Map<number, LevelStatus>();
    const count = (request: InferenceRequest): void => {
      const priorityLevel = levelOf(this.batching, request.priority);
      const known = found.get(priorityLevel);
      found.set(priorityLevel, {
        priorityLevel,
        queued: (known?.queued ?? 0) + 1,
        delayed: 0,
        rows: (known?.rows ?? 0) + request.rows,
        oldestQueueStart: Math.min(known?.oldestQueueStart ?? Number.POSITIVE_INFINITY, request.queueStart),
      });
    };
    for (let i = 0; i < this.datedCount; i++) count(this.dated(i));
    for (const request of this.patient.all()) count(request);
    return [...found.values()].sort((a, b) => a.priorityLevel - b.priorityLevel);
  }

  freePlaces(priority?: number): number {
    if (!this.hasLimits) return Number.POSITIVE_INFINITY;
    return freePlacesOf(this.batching, (level) => this.#sizes.get(level) ?? 0, priority);
  }

  /** Number of requests up to a place in the order: those that are due by this time, in an order by deadline. */
  countBefore(order: number): number {
    return this.#lowerBound(order, Number.POSITIVE_INFINITY) - this.#first;
  }

  /** Refuses the request that would run last: the newcomer, or one of its level in the queue. */
  #makeRoom(request: InferenceRequest, level: number): void {
    if (this.isFair) {
      for (let i = this.#dated.length - 1; i >= this.#first; i--) {
        const last = this.#dated[i]!;
        if (urgencyOf(last).order <= urgencyOf(request).order) break;
        if (levelOf(this.batching, last.priority) !== level) continue;
        last.cancel(queueFullError(last.id));
        return;
      }
    }
    throw queueFullError(request.id);
  }

  #isPatient(request: InferenceRequest): boolean {
    return dueOf(request) === Number.POSITIVE_INFINITY && this.rule === undefined;
  }

  /** Sets when a request is due, and its place in the order. */
  place(request: InferenceRequest): void {
    const due = deadlineOf(request, this.batching, this.limits, this.rule);
    const { cost, start } = request.extra ?? {};
    const urgency: Urgency = { due, order: due, ticket: this.#ticket++, share: undefined, charge: 0 };
    request.extra = cost === undefined && start === undefined ? urgency : { ...urgency, cost, start };
    this.rule?.place(request);
  }

  get isQueue(): boolean {
    return true;
  }

  /** Adds a request that has its place. @param isMoved true for one that another queue has accepted */
  push(request: InferenceRequest, isMoved = false): void {
    const level = levelOf(this.batching, request.priority);
    if (this.#bounded) {
      if (!isMoved && placesLeft(policyOf(this.batching, level), this.#sizes.get(level) ?? 0) === 0) {
        this.#makeRoom(request, level);
      }
      this.#sizes.set(level, (this.#sizes.get(level) ?? 0) + 1);
    }
    this.totals.size++;
    this.totals.rows += request.rows;
    request.holder = this;
    const due = dueOf(request);
    if (this.#isPatient(request)) {
      this.patient.push(request);
      return;
    }
    this.rule?.joined(request);
    this.#insert(request);
    // The model ends a request with a deadline of its own.
    if (request.deadline !== due && due < Number.POSITIVE_INFINITY)
      request.queueDeadline = this.deadlines.add(due, this.#expire, request);
  }

  take(request: InferenceRequest): void {
    this.rule?.ran(request);
    this.#remove(request);
  }

  /** Number of requests that have left because their deadlines passed, since the last call. */
  takeExpired(): number {
    const count = this.#expired;
    this.#expired = 0;
    return count;
  }

  remove(request: InferenceRequest): void {
    this.rule?.left(request);
    this.#remove(request);
  }

  #remove(request: InferenceRequest): void {
    if (request.settled && this.now() >= dueOf(request)) this.#expired++;
    request.holder = undefined;
    request.queueDeadline?.cancel();
    request.queueDeadline = undefined;
    this.totals.size--;
    this.totals.rows -= request.rows;
    if (this.#bounded) {
      const level = levelOf(this.batching, request.priority);
      this.#sizes.set(level, this.#sizes.get(level)! - 1);
    }
    if (this.#isPatient(request)) this.patient.remove(request);
    else this.#drop(request);
  }

  /** True for a request that runs after all others when its time is over: its level has the timeout action DELAY. */
  delays(request: InferenceRequest): boolean {
    const { timeoutAction } = policyOf(this.batching, levelOf(this.batching, request.priority));
    return timeoutAction === "DELAY" && request.deadline !== dueOf(request);
  }

  /** Gives up on the deadline of a request. */
  delay(request: InferenceRequest): void {
    request.queueDeadline?.cancel();
    request.queueDeadline = undefined;
    if (this.rule === undefined) {
      this.#drop(request);
      this.patient.push(request);
    }
    urgencyOf(request).due = Number.POSITIVE_INFINITY;
  }

  #insert(request: InferenceRequest): void {
    const dated = this.#dated;
    const { order, ticket } = urgencyOf(request);
    // Most often it is due last among those that wait.
    let at = dated.length;
    if (at > this.#first && urgencyOf(dated[at - 1]!).order > order) at = this.#lowerBound(order, ticket);
    if (at === dated.length) dated.push(request);
    else dated.splice(at, 0, request);
  }

  #drop(request: InferenceRequest): void {
    const at = this.#indexOf(request);
    if (at > this.#first) {
      this.#dated.splice(at, 1);
      return;
    }
    this.#dated[this.#first++] = undefined;
    if (this.#first < this.#dated.length && this.#first < COMPACT_AT) return;
    this.#dated = this.#dated.slice(this.#first);
    this.#first = 0;
  }

  #indexOf(request: InferenceRequest): number {
    if (this.#dated[this.#first] === request) return this.#first;
    const { order, ticket } = urgencyOf(request);
    return this.#lowerBound(order, ticket);
  }

  /** Index of the first request that is not before this place in the order. */
  #lowerBound(order: number, ticket: number): number {
    const dated = this.#dated;
    let low = this.#first;
    let high = dated.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const one = urgencyOf(dated[middle]!);
      if (one.order < order || (one.order === order && one.ticket < ticket)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Number of places at the front of the array that may be empty. */
const COMPACT_AT = 256;

/**
 * When the answer to a request is due: by its own deadline or timeout, else by the default of its caller, its level or
 * the model.
 *
 * @param rule knows the callers of requests in its own way
 */
export function deadlineOf(
  request: InferenceRequest,
  batching: ModelDynamicBatching,
  limits: DefaultLimits | undefined,
  rule?: Pick<RequestOrder, "nameOf">,
): number {
  const { deadline, clientLimitMs, queueTimeoutMicroseconds: timeout, queueStart } = request;
  let own = deadline ?? Number.POSITIVE_INFINITY;
  if (timeout > 0) own = Math.min(own, queueStart + timeout / 1000);
  if (clientLimitMs > 0) own = Math.min(own, queueStart + clientLimitMs);
  if (own < Number.POSITIVE_INFINITY) return own;
  const limitMs = defaultLimitMs(request, batching, limits, rule);
  return limitMs > 0 ? queueStart + limitMs : Number.POSITIVE_INFINITY;
}

/** Limit of a request that brings none, in milliseconds; 0 for none. */
function defaultLimitMs(
  request: InferenceRequest,
  batching: ModelDynamicBatching,
  limits: DefaultLimits | undefined,
  rule: Pick<RequestOrder, "nameOf"> | undefined,
): number {
  const level = levelOf(batching, request.priority);
  const policyMs = policyOf(batching, level).defaultTimeoutMicroseconds / 1000;
  if (limits === undefined) return policyMs;
  const { callerMs, levelMs, defaultMs } = limits;
  if (callerMs.size > 0) {
    const ofCaller = callerMs.get(rule?.nameOf?.(request) ?? callerOf(request, "caller"));
    if (ofCaller !== undefined) return ofCaller;
  }
  return levelMs.get(classLevelOf(batching, request.priority)) ?? (policyMs > 0 ? policyMs : defaultMs);
}
