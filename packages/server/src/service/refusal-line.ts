import { performance } from "node:perf_hooks";
import { type Clock, LinkedList, type ModelRequests } from "@tritonjs/core/internal/server";
import { errorWithoutStack } from "@tritonjs/protocol";

/** Number of refusals that go out together: small enough to keep the event loop's turn short. */
const LOT = 8;

/** Milliseconds between two lots while the event loop has idle time. Refusals then take a quarter of a core at most. */
const SHORTEST_TICK_MS = 4;

/** Most that the time between two lots grows while the event loop is busy. */
const MOST_SLOWNESS = 16;

/** Longest wait of a refusal while the event loop has idle time, in milliseconds and approximately. */
const LONGEST_IDLE_WAIT_MS = 1000;

/** Longest wait of a refusal while the event loop is busy, in milliseconds and approximately. */
const LONGEST_BUSY_WAIT_MS = 5000;

/** Utilization above which the event loop counts as busy. Below half of it, it counts as idle. */
const BUSY = 0.8;

/** The queue of a model, as requests that wait for room in it see it. */
export type WaitedQueue = Pick<ModelRequests, "isFull" | "freePlaces" | "onSettled" | "refusal">;

type FullQueue = Pick<WaitedQueue, "freePlaces" | "onSettled">;

/** The place of a refusal, or of a request at a full queue. */
export interface PlaceInLine {
  /** Resolves when its turn has come: the queue has room, or the refusal may go out. Rejects after `leave`. */
  readonly turn: Promise<void>;
  /** Leaves the line, because the client has gone. Has no effect after the turn. */
  leave(): void;
}

/**
 * Line of requests that found a full queue. Clients that retry at once must not take turns of the event loop from
 * running requests, so refusals leave in small lots. A small number of refusals goes out at once, and costs one look at
 * the clock.
 *
 * ```
 * refusal --fewer than 8 in a tick--> at once
 *         --more--> line: oldest ............ newest
 *                          |                    |
 *                8 each tick: refused    the queue has room: accepted
 * ```
 *
 * Room goes to the newest request: the oldest has waited for most of its client's patience, and is refused next anyway.
 * So answers stay quick however long the line is. Models with requests in the line take turns.
 *
 * A tick is short while the event loop has time to spare, and grows while it is busy. A long line shortens it again, and
 * makes lots larger once the tick is at its shortest.
 */
export class RefusalLine {
  readonly #clock: Clock;
  readonly #utilization: () => number;
  /** Requests by the queue that they wait for, the one whose turn is next first; undefined for mere refusals. */
  readonly #waiting = new Map<FullQueue | undefined, LinkedList<Waiting>>();
  #count = 0;
  /** 1 while the event loop has idle time. */
  #slowness = 1;
  #tickMs = SHORTEST_TICK_MS;
  #tickStart = Number.NEGATIVE_INFINITY;
  #outInTick = 0;
  #isTicking = false;

  /** @param utilization share of the time since the last call in which the event loop was busy */
  constructor(clock: Clock, utilization: () => number = loopUtilization()) {
    this.#clock = clock;
    this.#utilization = utilization;
  }

  /** Undefined for a refusal that may go out at once. Otherwise a promise for its turn. */
  turn(): Promise<void> | undefined {
    return this.#mayPass() ? undefined : this.#join(undefined).turn;
  }

  placeFor(queue: FullQueue): PlaceInLine {
    return this.#mayPass() ? PASSED : this.#join(queue);
  }

  /** Lets all out, because the server stops. */
  dissolve(): void {
    while (this.#count > 0) this.#letOut();
  }

  #mayPass(): boolean {
    if (this.#count > 0) return false;
    const now = this.#clock.now();
    if (now - this.#tickStart >= this.#tickMs) {
      this.#tickStart = now;
      this.#outInTick = 0;
    }
    if (this.#outInTick === LOT) return false;
    this.#outInTick++;
    return true;
  }

  #join(queue: FullQueue | undefined): PlaceInLine {
    if (!this.#isTicking) {
      this.#utilization();
      this.#wait();
    }
    const list = this.#waiting.get(queue) ?? this.#open(queue);
    const place = new Waiting(() => {
      if (!list.remove(place)) return;
      this.#removed(queue, list);
      place.reject(errorWithoutStack("CANCELLED", "the request was cancelled"));
    });
    list.push(place);
    this.#count++;
    return place;
  }

  #open(queue: FullQueue | undefined): LinkedList<Waiting> {
    const list = new LinkedList<Waiting>();
    this.#waiting.set(queue, list);
    let isDue = false;
    if (queue !== undefined) {
      // After a batch has ended, the next one leaves the queue in the same turn of the event loop.
      queue.onSettled = () => {
        if (isDue) return;
        isDue = true;
        this.#clock.defer(() => {
          isDue = false;
          this.#fill(queue, list);
        });
      };
    }
    return list;
  }

  /** Accepts the newest requests while their queue has room. */
  #fill(queue: FullQueue, list: LinkedList<Waiting>): void {
    for (let places = queue.freePlaces; places > 0; places--) {
      const newest = list.tail;
      if (newest === undefined) return;
      list.remove(newest);
      this.#removed(queue, list);
      newest.resolve();
    }
  }

  #removed(queue: FullQueue | undefined, list: LinkedList<Waiting>): void {
    this.#count--;
    if (list.tail !== undefined) return;
    this.#waiting.delete(queue);
    if (queue !== undefined) queue.onSettled = undefined;
  }

  #wait(): void {
    this.#isTicking = true;
    this.#tickMs = Math.max(SHORTEST_TICK_MS, LOT / this.#refusalsPerMs);
    this.#clock.setTimer(this.#tickMs, () => this.#clock.defer(() => this.#tick()));
  }

  get #refusalsPerMs(): number {
    const longestWaitMs = Math.min(LONGEST_BUSY_WAIT_MS, LONGEST_IDLE_WAIT_MS * this.#slowness);
    return Math.max(LOT / (SHORTEST_TICK_MS * this.#slowness), this.#count / longestWaitMs);
  }

  /**
   * Room that a batch has left in this turn of the event loop goes to the newest requests first. They have to be in
   * their queue before the oldest look for room.
   */
  #tick(): void {
    let hasRoom = false;
    for (const [queue, list] of this.#waiting) {
      if (queue === undefined || queue.freePlaces === 0) continue;
      hasRoom = true;
      this.#fill(queue, list);
    }
    if (hasRoom) this.#clock.defer(() => this.#sendLot());
    else this.#sendLot();
  }

  #sendLot(): void {
    this.#isTicking = false;
    const lot = Math.ceil(this.#refusalsPerMs * this.#tickMs);
    const utilization = this.#utilization();
    if (utilization > BUSY) this.#slowness = Math.min(MOST_SLOWNESS, 2 * this.#slowness);
    else if (utilization < BUSY / 2) this.#slowness = Math.max(1, this.#slowness / 2);
    this.#tickStart = this.#clock.now();
    this.#outInTick = Math.min(lot, this.#count, LOT);
    for (let out = 0; out < lot && this.#count > 0; out++) this.#letOut();
    if (this.#count > 0) this.#wait();
  }

  #letOut(): void {
    const [queue, list] = this.#waiting.entries().next().value!;
    const oldest = list.head!;
    list.remove(oldest);
    this.#removed(queue, list);
    if (list.head !== undefined && this.#waiting.size > 1) {
      this.#waiting.delete(queue);
      this.#waiting.set(queue, list);
    }
    oldest.resolve();
  }
}

/** The place of a refusal that goes out at once. */
const PASSED: PlaceInLine = { turn: Promise.resolve(), leave: () => {} };

class Waiting implements PlaceInLine {
  readonly turn: Promise<void>;
  resolve!: () => void;
  reject!: (error: Error) => void;
  next: Waiting | undefined = undefined;
  previous: Waiting | undefined = undefined;

  constructor(readonly leave: () => void) {
    this.turn = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

/** Makes a function that returns the event loop's utilization since its last call. */
function loopUtilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
