import {
  type ModelDynamicBatching,
  type ModelQueuePolicy,
  queueFullError,
  timeoutError,
} from "@tritonjs/protocol";
import { defaultQueuePolicy } from "@tritonjs/protocol/config";
import type { InferenceRequest, RequestHolder } from "../../request/inference-request.js";
import type { DeadlineQueue } from "../../system/clock.js";
import { getOrAdd, LinkedList } from "../../system/collections.js";
import type { LevelStatus } from "../scheduler.js";

/** Waiting requests in the order in which they run, as batches are formed from them. */
export interface QueuedRequestView {
  readonly head: InferenceRequest | undefined;
  after(request: InferenceRequest): InferenceRequest | undefined;
}

/** Queue of a batcher. */
export interface BatcherQueue extends QueuedRequestView {
  /** Number of waiting requests, and of their rows. */
  readonly totals: Readonly<QueueTotals>;
  /** The levels that have requests, highest first. */
  readonly levels: readonly LevelStatus[];
  /** Level of the next request; 0 for an empty queue and a queue without levels. */
  readonly headPriority: number;
  /** True if batches may be formed ahead of the instances. */
  readonly allowsPrefetch: boolean;
  /** False if any number of requests may wait. */
  readonly hasLimits: boolean;
  /** Number of requests of this priority that have room; without a priority, of the priority with the most room. */
  freePlaces(priority?: number): number;
  /** Finds the place of a request, before it is admitted, in a queue with an order of its own. */
  place?(request: InferenceRequest): void;
  /**
   * @param isMoved true for a request that another queue has accepted
   * @throws TritonError UNAVAILABLE if the level of the request is full, unless it is moved
   */
  push(request: InferenceRequest, isMoved?: boolean): void;
  /** Removes a request that runs. @default as one that leaves */
  take?(request: InferenceRequest): void;
}

interface Level {
  readonly priority: number;
  readonly shared: QueueTotals;
  readonly own: QueueTotals;
  readonly policy: ModelQueuePolicy;
  readonly unexpired: RequestQueue;
  /** Requests whose timeout passed under the DELAY action: they run after all others of the level. */
  readonly delayed: RequestQueue;
  /** Applies the policy to a request whose timeout has passed. */
  readonly expire: (request: InferenceRequest) => void;
}

/**
 * Queue of the dynamic batcher: priority levels, the highest (1) first, each with its queue policy.
 *
 * ```
 * level 1: unexpired, delayed | level 2: unexpired, delayed | ...
 * ```
 *
 * A timeout acts when it passes. Under REJECT, the request ends with UNAVAILABLE. Under DELAY, it moves to the end of
 * its level.
 */
export class PriorityQueue implements BatcherQueue {
  readonly totals: QueueTotals = { size: 0, rows: 0 };
  /** In ascending order. A level is added when a request needs it. Empty levels are removed when another is added. */
  #levels: Level[] = [];
  /** The level of a queue without levels. */
  readonly #only: Level | undefined;
  readonly #batching: ModelDynamicBatching;
  readonly hasLimits: boolean;
  readonly #deadlines: DeadlineQueue;
  readonly #now: () => number;
  readonly #sharedLevels: Map<number, QueueTotals> | undefined;
  /** Policies must not affect requests that were handed over, so no policy may affect a waiting request. */
  readonly allowsPrefetch: boolean;

  /**
   * @param onExpired called after a timeout has changed the queue
   * @param sharedLevels totals by level, for queues with common size limits
   */
  constructor(
    batching: ModelDynamicBatching,
    deadlines: DeadlineQueue,
    now: () => number,
    private readonly onExpired: () => void,
    sharedLevels?: Map<number, QueueTotals>,
  ) {
    this.#sharedLevels = sharedLevels;
    this.#batching = batching;
    this.hasLimits = isBounded(batching);
    this.#deadlines = deadlines;
    this.#now = now;
    const { priorityLevels, defaultQueuePolicy: policy } = batching;
    this.allowsPrefetch =
      priorityLevels === 0 &&
      (policy === undefined ||
        (policy.defaultTimeoutMicroseconds === 0 &&
          !policy.allowTimeoutOverride &&
          policy.maxQueueSize === 0));
    if (priorityLevels === 0) this.#only = this.#openLevel(0);
  }

  /** The levels that have requests, highest first. */
  get levels(): LevelStatus[] {
    return this.#levels
      .filter(({ own }) => own.size > 0)
      .map(({ priority, own, unexpired, delayed }) => {
        let oldestQueueStart = unexpired.head?.queueStart ?? Number.POSITIVE_INFINITY;
        // Delayed requests are in the order in which their timeouts passed.
        for (let one = delayed.head; one !== undefined; one = one.next) {
          oldestQueueStart = Math.min(oldestQueueStart, one.queueStart);
        }
        return {
          priorityLevel: priority,
          queued: own.size,
          delayed: delayed.size,
          rows: own.rows,
          oldestQueueStart,
        };
      });
  }

  get head(): InferenceRequest | undefined {
    return this.#only === undefined
      ? this.#firstFrom(0)
      : (this.#only.unexpired.head ?? this.#only.delayed.head);
  }

  /** Level of the next request; 0 for an empty queue and a queue without levels. */
  get headPriority(): number {
    return this.#levels.find(({ own }) => own.size > 0)?.priority ?? 0;
  }

  after(request: InferenceRequest): InferenceRequest | undefined {
    if (request.next !== undefined) return request.next;
    const index = this.#levels.findIndex(
      ({ unexpired, delayed }) => request.holder === unexpired || request.holder === delayed,
    );
    const level = this.#levels[index]!;
    return (
      (request.holder === level.unexpired ? level.delayed.head : undefined) ?? this.#firstFrom(index + 1)
    );
  }

  freePlaces(priority?: number): number {
    if (!this.hasLimits) return Number.POSITIVE_INFINITY;
    const sizeOf = (level: number) => this.#levels.find((one) => one.priority === level)?.shared.size ?? 0;
    return freePlacesOf(this.#batching, sizeOf, priority);
  }

  push(request: InferenceRequest, isMoved = false): void {
    const level = this.#only ?? this.#levelOf(request);
    const { policy } = level;
    if (this.hasLimits && !isMoved && placesLeft(policy, level.shared.size) === 0) {
      throw queueFullError(request.id);
    }
    level.unexpired.push(request);
    if (policy.defaultTimeoutMicroseconds === 0 && !policy.allowTimeoutOverride) return;
    const timeout = queueTimeoutMicroseconds(policy, request);
    if (timeout > 0) {
      const at = this.#now() + timeout / 1000;
      request.queueDeadline = this.#deadlines.add(at, level.expire, request);
    }
  }

  #expire(request: InferenceRequest, level: Level): void {
    request.queueDeadline = undefined;
    if (level.policy.timeoutAction === "DELAY") {
      level.unexpired.remove(request);
      level.delayed.push(request);
    } else {
      request.cancel(timeoutError());
    }
    this.onExpired();
  }

  #firstFrom(index: number): InferenceRequest | undefined {
    for (let i = index; i < this.#levels.length; i++) {
      const { unexpired, delayed } = this.#levels[i]!;
      const first = unexpired.head ?? delayed.head;
      if (first !== undefined) return first;
    }
    return undefined;
  }

  #levelOf(request: InferenceRequest): Level {
    const priority = levelOf(this.#batching, request.priority);
    for (const level of this.#levels) if (level.priority === priority) return level;
    return this.#openLevel(priority);
  }

  #totalsOfAll(priority: number): QueueTotals | undefined {
    return this.#sharedLevels && getOrAdd(this.#sharedLevels, priority, () => ({ size: 0, rows: 0 }));
  }

  #openLevel(priority: number): Level {
    const own: QueueTotals = { size: 0, rows: 0 };
    const ofAll = this.#totalsOfAll(priority);
    const totals = ofAll === undefined ? [this.totals, own] : [this.totals, own, ofAll];
    const level: Level = {
      priority,
      own,
      shared: ofAll ?? own,
      policy: policyOf(this.#batching, priority),
      unexpired: new RequestQueue(...totals),
      delayed: new RequestQueue(...totals),
      expire: (request) => this.#expire(request, level),
    };
    const inUse = this.#levels.filter((one) => one.own.size > 0);
    this.#levels = [...inUse, level].sort((a, b) => a.priority - b.priority);
    return level;
  }
}

/**
 * Longest wait of a request. Its own timeout counts if the policy allows it, and can only shorten the default. Unlike
 * in Triton, it also counts if there is no default.
 */
function queueTimeoutMicroseconds(policy: ModelQueuePolicy, request: InferenceRequest): number {
  const { defaultTimeoutMicroseconds: byDefault, allowTimeoutOverride } = policy;
  const own = allowTimeoutOverride ? request.queueTimeoutMicroseconds : 0;
  if (own === 0) return byDefault;
  return byDefault === 0 ? own : Math.min(own, byDefault);
}

/** The level of requests with this priority; 0 for a queue without levels. */
export function levelOf(
  { priorityLevels, defaultPriorityLevel }: ModelDynamicBatching,
  priority: number,
): number {
  if (priorityLevels === 0) return 0;
  return priority >= 1 && priority <= priorityLevels ? priority : defaultPriorityLevel;
}

/** The level that names the class of a request: its priority as it came, for a queue without levels. */
export function classLevelOf(batching: ModelDynamicBatching, priority: number): number {
  return batching.priorityLevels === 0 ? priority : levelOf(batching, priority);
}

export function policyOf(batching: ModelDynamicBatching, level: number): ModelQueuePolicy {
  return batching.priorityQueuePolicy[level] ?? batching.defaultQueuePolicy ?? defaultQueuePolicy();
}

/** True if a policy of the queue limits the number of waiting requests. Most queues have no limit. */
export function isBounded({
  defaultQueuePolicy: byDefault,
  priorityQueuePolicy,
}: ModelDynamicBatching): boolean {
  const policies = [...Object.values(priorityQueuePolicy), ...(byDefault === undefined ? [] : [byDefault])];
  return policies.some(({ maxQueueSize }) => maxQueueSize > 0);
}

/** Number of requests that a level has room for; infinite without a limit. */
export function placesLeft({ maxQueueSize }: ModelQueuePolicy, size: number): number {
  return maxQueueSize > 0 ? Math.max(0, maxQueueSize - size) : Number.POSITIVE_INFINITY;
}

/**
 * Number of requests that the level of this priority has room for; without a priority, that the level with the most
 * room has.
 *
 * @param sizeOf returns the number of waiting requests of a level
 */
export function freePlacesOf(
  batching: ModelDynamicBatching,
  sizeOf: (level: number) => number,
  priority?: number,
): number {
  const placesOf = (level: number) => placesLeft(policyOf(batching, level), sizeOf(level));
  if (priority !== undefined) return placesOf(levelOf(batching, priority));
  const { priorityLevels } = batching;
  let most = 0;
  for (let level = Math.min(1, priorityLevels); level <= priorityLevels; level++) {
    most = Math.max(most, placesOf(level));
  }
  return most;
}

export interface QueueTotals {
  size: number;
  rows: number;
}

export class RequestQueue extends LinkedList<InferenceRequest> implements RequestHolder {
  readonly #totals: readonly QueueTotals[];

  get isQueue(): boolean {
    return true;
  }

  /** @param totals totals to update besides the queue's own size */
  constructor(...totals: readonly QueueTotals[]) {
    super();
    this.#totals = totals;
  }

  override push(request: InferenceRequest): void {
    super.push(request);
    for (const totals of this.#totals) {
      totals.size++;
      totals.rows += request.rows;
    }
    request.holder = this;
  }

  override remove(request: InferenceRequest): boolean {
    request.holder = undefined;
    request.queueDeadline?.cancel();
    request.queueDeadline = undefined;
    for (const totals of this.#totals) {
      totals.size--;
      totals.rows -= request.rows;
    }
    return super.remove(request);
  }
}

/** A binary heap ordered by `compare`. Adding and taking are O(log n). */
export class Heap<T> {
  readonly #items: T[] = [];

  /** @param compare negative if `a` is to be taken before `b` */
  constructor(private readonly compare: (a: T, b: T) => number) {}

  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.compare(items[parent]!, item) <= 0) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the first item; undefined if the heap is empty. */
  take(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && this.compare(items[child + 1]!, items[child]!) < 0) child++;
      if (this.compare(items[child]!, last) >= 0) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return first;
  }
}
