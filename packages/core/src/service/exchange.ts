import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { errorWithoutStack, type ModelConfig } from "@tritonjs/protocol";
import type { ModelVersion } from "../model/model-version.js";
import type { InferInit, RequestHandle, ResponseHandler } from "../request/inference-request.js";
import type { Clock } from "../system/clock.js";
import type { PinnedModel, RoomWait } from "./inference-service.js";

/** The parts of the service that a pin uses. */
export interface PinOwner {
  readonly refusals: RefusalLine;
  /** @throws TritonError UNAVAILABLE while the server refuses requests. */
  assertOpen(): void;
  /** Looks up a version that is ready. @throws TritonError NOT_FOUND, UNAVAILABLE or INVALID_ARG. */
  find(name: string, version: string): ModelVersion;
}

/** The model version that one look-up has found. The request is decoded with its configuration. */
export class PinnedVersion implements PinnedModel {
  readonly config: ModelConfig;
  readonly #owner: PinOwner;
  readonly #model: ModelVersion;
  readonly #requested: string;

  /** @param requested the version as the client wrote it, for a repeated look-up */
  constructor(owner: PinOwner, model: ModelVersion, requested: string) {
    this.config = model.config;
    this.#owner = owner;
    this.#model = model;
    this.#requested = requested;
  }

  get name(): string {
    return this.#model.name;
  }

  get version(): number {
    return this.#model.version;
  }

  get labels(): ReadonlyMap<string, readonly string[]> {
    return this.#model.labels;
  }

  get directory(): string | undefined {
    const { directory, version } = this.#model;
    return directory && join(directory, String(version));
  }

  inService(): PinnedVersion {
    if (this.#model.state === "READY") return this;
    const found = this.#owner.find(this.name, this.#requested);
    return new PinnedVersion(this.#owner, found, this.#requested);
  }

  awaitRoom(id: string): RoomWait | undefined {
    if (!this.#model.isFull) return undefined;
    const { turn, leave } = this.#owner.refusals.placeFor(this.#model);
    return { turn: turn.then(() => this.#assertRoom(id)), leave };
  }

  infer(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    this.#owner.assertOpen();
    return this.#model.send(init, onResponse);
  }

  /** @throws TritonError UNAVAILABLE if the queue is still full. */
  #assertRoom(id: string): void {
    this.#owner.assertOpen();
    const refusal = this.inService().#model.refusal(id);
    if (refusal !== undefined) throw refusal;
  }
}

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

/** The queue of a model, as the line sees it. */
type FullQueue = Pick<ModelVersion, "freePlaces" | "onSettled">;

/** A place in the line. */
interface LinePlace {
  /** Resolves at the refusal's turn, or earlier when the model has room. Rejects with CANCELLED after `leave`. */
  readonly turn: Promise<void>;
  /** Leaves the line. Has no effect after the turn. */
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
  readonly #waiting = new Map<FullQueue | undefined, WaitingList>();
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

  /** A place for a request that found this queue full. */
  placeFor(queue: FullQueue): LinePlace {
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

  #join(queue: FullQueue | undefined): LinePlace {
    if (!this.#isTicking) {
      this.#utilization();
      this.#wait();
    }
    const list = this.#waiting.get(queue) ?? this.#open(queue);
    const waiting = list.add();
    this.#count++;
    return {
      turn: waiting.turn,
      leave: () => {
        if (!list.delete(waiting)) return;
        this.#removed(queue, list);
        waiting.reject(errorWithoutStack("CANCELLED", "the request was cancelled"));
      },
    };
  }

  #open(queue: FullQueue | undefined): WaitingList {
    const list = new WaitingList();
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
  #fill(queue: FullQueue, list: WaitingList): void {
    for (let places = queue.freePlaces; places > 0; places--) {
      const newest = list.newest;
      if (newest === undefined) return;
      list.delete(newest);
      this.#removed(queue, list);
      newest.resolve();
    }
  }

  /** Keeps count after a request has left its list. */
  #removed(queue: FullQueue | undefined, list: WaitingList): void {
    this.#count--;
    if (list.newest !== undefined) return;
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

  /** Lets out the oldest request of the model whose turn it is. */
  #letOut(): void {
    const [queue, list] = this.#waiting.entries().next().value!;
    const oldest = list.oldest!;
    list.delete(oldest);
    this.#removed(queue, list);
    if (list.oldest !== undefined && this.#waiting.size > 1) {
      this.#waiting.delete(queue);
      this.#waiting.set(queue, list);
    }
    oldest.resolve();
  }
}

/** The place of a refusal that goes out at once. */
const PASSED: LinePlace = { turn: Promise.resolve(), leave: () => {} };

/** A waiting request. */
class Waiting {
  readonly turn: Promise<void>;
  resolve!: () => void;
  reject!: (error: Error) => void;
  older: Waiting | undefined;
  newer: Waiting | undefined;
  isOut = false;

  constructor() {
    this.turn = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

/** Requests that wait for the same queue, as a list through them: any of them may leave. */
class WaitingList {
  oldest: Waiting | undefined;
  newest: Waiting | undefined;

  add(): Waiting {
    const waiting = new Waiting();
    waiting.older = this.newest;
    if (this.newest === undefined) this.oldest = waiting;
    else this.newest.newer = waiting;
    this.newest = waiting;
    return waiting;
  }

  /** Removes a request. False if it has been removed before. */
  delete(waiting: Waiting): boolean {
    if (waiting.isOut) return false;
    waiting.isOut = true;
    const { older, newer } = waiting;
    if (older === undefined) this.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.newest = older;
    else newer.older = older;
    waiting.older = undefined;
    waiting.newer = undefined;
    return true;
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
