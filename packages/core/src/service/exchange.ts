import { performance } from "node:perf_hooks";
import { errorFor, errorWithoutStack, TritonError } from "@tritonjs/protocol";
import type { ModelRequests } from "../model/model-requests.js";
import type { InferInit, RequestHandle } from "../request/inference-request.js";
import type { InferenceResponse } from "../request/inference-response.js";
import type { RegionRange, RequestedRange } from "../shared-memory/shared-memory.js";
import type { Clock } from "../system/clock.js";
import { LinkedList } from "../system/collections.js";
import type { Client, InferenceService, PinnedModel, RoomWait } from "./inference-service.js";

/** The error of a client that left before its request was complete. It is never sent. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";

  constructor(cause?: unknown) {
    super("the client closed the connection before its request was complete", { cause });
  }
}

/** Receives what becomes of one request: either its refusal alone, or outcomes of which the last is final. */
export interface ResponseSink {
  /** @param outcome undefined for a decoupled model that ends without a further response */
  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void;
  /** Receives the error of a request that was not accepted, when it is the turn of the refusal. */
  refuse(error: unknown): void;
}

interface ResponseTrace {
  responded(): void;
}

/** Options of an {@link Exchange}. */
export interface ExchangeOptions {
  /** Text of the refusal of models that may send several responses; undefined where they are allowed. */
  readonly unaryOnly?: string | undefined;
  /** False for a request that is too large to be kept until the turn of its refusal. @default true */
  readonly mayWait?: boolean;
  /** Reads a header, for a transport whose requests have no client. */
  readonly header?: Client["header"];
}

/**
 * The life of one inference request over any transport.
 *
 * ```
 * new Exchange   with the version that serves now
 * turn()         waits while the queue is full; rejects at the refusal's turn
 *                (the transport reads the body)
 * current()      the version in service after the wait, with which the transport decodes
 * send()         queues the request. Its outcomes, or its refusal, go to the sink; it is cancelled with its client
 * ```
 *
 * Nothing waits between `current` and `send`, so that a reload cannot mix two versions.
 */
export class Exchange {
  /** The version for which the request was or will be decoded. */
  model: PinnedModel;
  /** Set for a traced request before it is sent. */
  trace: ResponseTrace | undefined = undefined;
  /** True once the model has accepted the request and answered: errors are its own from then on. */
  answered = false;
  readonly #service: Pick<InferenceService, "refusalTurn" | "sharedMemory">;
  readonly #client: Client | undefined;
  readonly #unaryOnly: string | undefined;
  readonly #mayWait: boolean;
  readonly #headers: Pick<Client, "header"> | undefined;
  #wait: RoomWait | undefined = undefined;
  #sink: ResponseSink | undefined = undefined;
  #handle: RequestHandle | undefined = undefined;
  #forgetClient: (() => void) | undefined = undefined;
  #regions: RegionRange[] | undefined = undefined;

  /**
   * @param client undefined for a transport that calls `cancel` itself
   * @param model the version that the look-up of the request has found
   * @throws TritonError UNSUPPORTED for a decoupled model where none is allowed
   */
  constructor(
    service: Pick<InferenceService, "refusalTurn" | "sharedMemory">,
    client: Client | undefined,
    model: PinnedModel,
    { unaryOnly, mayWait = true, header }: ExchangeOptions = {},
  ) {
    this.#headers = header === undefined ? client : { header };
    this.#service = service;
    this.#client = client;
    this.#unaryOnly = unaryOnly;
    this.#mayWait = mayWait;
    this.model = model;
    this.#refuseDecoupled();
  }

  /**
   * The turn of a refusal while the model's queue is full; undefined while there is room. Resolves if there is room by
   * then. Rejects with UNAVAILABLE if there is none, and with ClientGone when the client leaves.
   *
   * @param id id that the client gave the request; empty while it is unknown
   */
  turn(id: string): Promise<void> | undefined {
    const wait = this.#mayWait ? this.model.awaitRoom(id) : undefined;
    return wait && this.#turnOf(wait);
  }

  async #turnOf(wait: RoomWait): Promise<void> {
    this.#wait = wait;
    const forgetClient = this.#client?.onGone(() => wait.leave());
    try {
      await wait.turn;
    } catch (refusal) {
      throw this.#client?.gone ? new ClientGone(refusal) : refusal;
    } finally {
      this.#wait = undefined;
      forgetClient?.();
    }
  }

  /**
   * The version in service now. Call it after each wait.
   *
   * @throws TritonError NOT_FOUND or UNAVAILABLE if none is, UNSUPPORTED as the constructor
   */
  current(): PinnedModel {
    const model = this.model.inService();
    if (model !== this.model) {
      this.model = model;
      this.#refuseDecoupled();
    }
    return model;
  }

  #refuseDecoupled(): void {
    if (this.#unaryOnly === undefined || !this.model.config.modelTransactionPolicy?.decoupled) return;
    throw errorFor("DECOUPLED_MODEL", this.#unaryOnly);
  }

  /**
   * Queues the request, and cancels it when the client leaves.
   *
   * @returns the turn of the refusal if the request is refused and that has to wait
   */
  send(request: InferInit, sink: ResponseSink): Promise<void> | undefined {
    this.#sink = sink;
    const client = this.#client;
    if (client?.gone) {
      sink.refuse(new ClientGone());
      return undefined;
    }
    let handle: RequestHandle;
    try {
      let content = request;
      const routed = this.model.route?.(request, this.#headers);
      if (routed !== undefined) [this.model, content] = routed;
      handle = this.model.infer(content, (outcome, final, sent) => this.#receive(outcome, final, sent));
    } catch (error) {
      return this.#refuse(error);
    }
    if (handle.settled) return undefined;
    this.#handle = handle;
    if (client === undefined) return undefined;
    // An inline callback has already run by now, and the client may have left meanwhile.
    if (client.gone) handle.cancel(client.reason);
    else {
      this.#forgetClient = client.onGone(() => void handle.cancel(client.reason));
      // A client may call the listener at once.
      if (handle.settled) this.#forgetClient();
    }
    return undefined;
  }

  /**
   * Sends a request that has exactly one response. Rejects with its refusal or its error, with INTERNAL for another
   * number of responses, and with ClientGone when the client has left before.
   */
  single(request: InferInit): Promise<InferenceResponse> {
    return new Promise((resolve, reject) => void this.send(request, new SingleResponse(resolve, reject)));
  }

  /** Holds the shared memory of a tensor until {@link release}. Throws for an unknown region and a range outside it. */
  hold(range: RequestedRange): RegionRange {
    const held = this.#service.sharedMemory.hold(range);
    this.#regions ??= [];
    this.#regions.push(held);
    return held;
  }

  /** Releases the shared memory of the request when it is done. Calling it twice is harmless. */
  release(): void {
    const regions = this.#regions;
    if (regions === undefined) return;
    this.#regions = undefined;
    for (const region of regions) this.#service.sharedMemory.release(region);
  }

  /** Asks the model to pause between its responses. */
  pause(): void {
    this.#handle?.pause();
  }

  resume(): void {
    this.#handle?.resume();
  }

  /** Tells a decoupled model that no more responses are wanted. Returns false if the model cannot be told. */
  askToStop(): boolean {
    return this.#handle?.askToStop() ?? false;
  }

  /** Cancels the request, or ends its wait for room. Returns false if it was over or not sent. */
  cancel(reason?: TritonError): boolean {
    this.#wait?.leave();
    return this.#handle?.cancel(reason) ?? false;
  }

  #receive(outcome: InferenceResponse | TritonError | undefined, final: boolean, sent: RequestHandle): void {
    this.#handle = final ? undefined : sent;
    if (final) this.#forgetClient?.();
    if (sent.refused) {
      this.#sink!.refuse(outcome);
      return;
    }
    this.answered = true;
    if (outcome !== undefined) this.trace?.responded();
    this.#sink!.respond(outcome, final);
  }

  /** An overloaded model's refusal waits for its turn: clients that retry at once must not slow running requests down. */
  #refuse(error: unknown): Promise<void> | undefined {
    const isOverload = this.#mayWait && TritonError.is(error) && error.code === "UNAVAILABLE";
    const turn = isOverload ? this.#service.refusalTurn?.() : undefined;
    if (turn !== undefined) return turn.then(() => this.#sink!.refuse(error));
    this.#sink!.refuse(error);
    return undefined;
  }
}

class SingleResponse implements ResponseSink {
  readonly #resolve: (response: InferenceResponse) => void;
  readonly refuse: (error: unknown) => void;
  #count = 0;
  #last: InferenceResponse | undefined = undefined;
  #error: TritonError | undefined = undefined;

  constructor(resolve: (response: InferenceResponse) => void, reject: (error: unknown) => void) {
    this.#resolve = resolve;
    this.refuse = reject;
  }

  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    if (TritonError.is(outcome)) this.#error ??= outcome;
    else if (outcome !== undefined) {
      this.#count++;
      this.#last = outcome;
    }
    if (!final) return;
    if (this.#error !== undefined) this.refuse(this.#error);
    else if (this.#count === 1) this.#resolve(this.#last!);
    else {
      const text = `expected a single response, got ${this.#count}`;
      this.refuse(errorFor("INVALID_OUTPUT", text));
    }
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
type FullQueue = Pick<ModelRequests, "freePlaces" | "onSettled">;

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

  placeFor(queue: FullQueue): RoomWait {
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

  #join(queue: FullQueue | undefined): RoomWait {
    if (!this.#isTicking) {
      this.#utilization();
      this.#wait();
    }
    const list = this.#waiting.get(queue) ?? this.#open(queue);
    const waiting = new Waiting();
    list.push(waiting);
    this.#count++;
    return {
      turn: waiting.turn,
      leave: () => {
        if (!list.remove(waiting)) return;
        this.#removed(queue, list);
        waiting.reject(errorWithoutStack("CANCELLED", "the request was cancelled"));
      },
    };
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
const PASSED: RoomWait = { turn: Promise.resolve(), leave: () => {} };

class Waiting {
  readonly turn: Promise<void>;
  resolve!: () => void;
  reject!: (error: Error) => void;
  next: Waiting | undefined = undefined;
  previous: Waiting | undefined = undefined;

  constructor() {
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
