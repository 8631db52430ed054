import { errorFor, TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { Clock } from "../system/clock.js";
import { LinkedList } from "../system/collections.js";
import type { ModelInstance } from "./model-instance.js";
import { RateLimiter } from "./rate-limiter.js";

/** A scheduler as its instances see it: the settings of their queue, and the events that it wants to know of. */
export interface InstanceUser {
  /** Milliseconds that a payload must have waited before an instance may merge the next one into it; 0 for never. */
  readonly mergeAfterMs?: number;
  /** Largest number of rows of a merged payload. */
  readonly maxBatchSize?: number;
  /** There may be room for another payload: a queued payload was taken or cancelled, or an execution ended. */
  slotFreed?(): void;
  /** An instance failed, or recovered. */
  healthChanged?(healthy: boolean, instance: ModelInstance): void;
  started?(instance: ModelInstance, payload: Payload): void;
  ended?(instance: ModelInstance, payload: Payload): void;
  /**
   * An instance was added. For a scheduler that chooses instances itself: each instance then has a group of its own.
   *
   * @returns what feeds this group
   */
  opened?(part: InstanceGroup): InstanceUser;
  /** An instance is to be removed. Resolves when the scheduler has no work for it any more. */
  closed?(part: InstanceGroup): Promise<void>;
}

/**
 * All instances of a model version and the queue of payloads in front of them. An idle instance takes the oldest
 * payload; a busy one normally gets none. Instances may be added and removed while it works.
 *
 * ```
 * scheduler --enqueue--> [payload, payload, ...] <--take-- idle instance, when the rate limiter lets it
 * ```
 */
export class InstanceGroup {
  /** Loads instances before they join, and releases them. */
  readonly loader: InstanceLoader;

  readonly #clock: Clock;
  readonly #limiter: RateLimiter | undefined;
  readonly #onWorn: (instance: ModelInstance) => void;
  readonly #queue = new PayloadQueue(() => this.#user.slotFreed?.());
  readonly #instances: ModelInstance[];
  /** Instances that take payloads: neither passive nor about to be removed. */
  serving: readonly ModelInstance[];
  /** Instances in the queue of the rate limiter: one for each waiting payload. */
  readonly #staged = new Set<ModelInstance>();
  #idleWaiters: (() => void)[] = [];
  readonly #parts = new Map<ModelInstance, InstanceGroup>();
  #user: InstanceUser = {};
  /** Hold count: while it is not 0, no payload starts. */
  #holds = 0;

  /** @param onWorn called for an instance that has reached its recycling limits, until it is replaced */
  constructor(
    instances: readonly ModelInstance[],
    clock: Clock,
    limiter?: RateLimiter,
    onWorn: (instance: ModelInstance) => void = () => {},
  ) {
    this.#instances = [...instances];
    this.serving = instances.filter((instance) => !instance.passive);
    this.#clock = clock;
    this.#limiter = limiter;
    this.loader = new InstanceLoader(limiter);
    this.#onWorn = onWorn;
    for (const instance of instances) this.#watch(instance);
  }

  get instances(): readonly ModelInstance[] {
    return this.#instances;
  }

  /** Connects the scheduler that feeds the instances. */
  serve(scheduler: InstanceUser): void {
    this.#user = scheduler;
    this.#queue.mergeAfterMs = scheduler.mergeAfterMs ?? 0;
    this.#queue.maxBatchSize = scheduler.maxBatchSize ?? 0;
    if (scheduler.opened !== undefined) for (const instance of this.serving) this.#openPart(instance);
  }

  /** Loads every instance. Rejects with the first failure, after the others have been stopped. */
  async start(): Promise<void> {
    await this.loader.loadAll(this.#instances);
    for (const instance of this.#instances) instance.healthy = true;
    this.dispatch();
  }

  join(instance: ModelInstance, replaced?: ModelInstance): void {
    const at = replaced === undefined ? -1 : this.#instances.indexOf(replaced);
    this.#instances.splice(at < 0 ? this.#instances.length : at, 0, instance);
    this.#watch(instance);
    instance.healthy = true;
    if (!instance.passive) {
      this.serving = this.#instances.filter((one) => one === instance || this.serving.includes(one));
      if (this.#user.opened !== undefined) this.#openPart(instance);
    }
    this.#freed();
  }

  /** Stops giving payloads to an instance. Resolves when its work is done and it has been stopped. */
  async retire(instance: ModelInstance): Promise<void> {
    const part = this.#parts.get(instance);
    if (part !== undefined) await this.#user.closed?.(part);
    this.serving = this.serving.filter((one) => one !== instance);
    (part ?? this).#unstage(instance);
    this.dispatch();
    await (part ?? this).#idleOf((one) => one === instance);
    await instance.executor.drained?.();
    this.#parts.delete(instance);
    if (this.#instances.includes(instance)) this.#instances.splice(this.#instances.indexOf(instance), 1);
    await this.loader.release(instance);
  }

  stop(): Promise<void> {
    return this.loader.stop();
  }

  get queuedPayloads(): number {
    return this.#queue.size;
  }

  get waiting(): readonly Payload[] {
    return this.#queue.all();
  }

  /** The payloads that wait for one instance alone, for a scheduler that chooses instances itself. */
  waitingFor(instance: ModelInstance): readonly Payload[] {
    return this.#parts.get(instance)?.waiting ?? [];
  }

  /** True if instances keep resources while their batches wait for other models. */
  get limited(): boolean {
    return this.#limiter !== undefined;
  }

  /**
   * Number of payloads that the instances could take now: one for each idle instance, or more for instances that take
   * several at a time.
   */
  get idleInstances(): number {
    return this.serving.reduce((sum, instance) => sum + instance.room, 0);
  }

  /** Number of payloads that have a place in an instance, now or after a turn of the event loop. */
  get freePlaces(): number {
    return this.serving.reduce((sum, instance) => sum + instance.freePlaces, 0);
  }

  /** Why no instance can run; undefined while at least one can. */
  get unhealthyReason(): TritonError | undefined {
    return whyNoneCanRun(this.#instances, this.serving);
  }

  /**
   * Why no instance runs, once all of them have crashed or lost their servers and could not come back; undefined while
   * at least one runs or restarts for the first time.
   */
  get crashReason(): TritonError | undefined {
    return this.serving.length === 0 ? undefined : this.unhealthyReason;
  }

  /** True if the readiness of the model may change while it is loaded. */
  get reportsReadiness(): boolean {
    return this.#instances.some(
      ({ executor }) => executor.checkReady !== undefined || executor.restarts !== undefined,
    );
  }

  /** Asks the models of all instances whether they can be used now. Rejects with the reason of one that cannot. */
  async checkReady(): Promise<void> {
    await Promise.all(this.#instances.map(({ executor }) => executor.checkReady?.()));
  }

  enqueue(payload: Payload): void {
    this.#queue.push(payload);
    this.dispatch();
    const dead = this.unhealthyReason;
    if (dead !== undefined) payload.fail(dead);
  }

  /** Starts no payload until a promise resolves. */
  hold(until: Promise<unknown>): void {
    this.#holds++;
    void until.then(() => {
      if (--this.#holds === 0) this.#freed();
    });
  }

  dispatch(): void {
    if (this.#holds > 0) return;
    if (this.#limiter !== undefined) {
      this.#stage(this.#limiter);
      return;
    }
    for (let next = this.#queue.head; next !== undefined; next = this.#queue.head) {
      const instance = chooseInstance(this.serving, next);
      if (instance === undefined) return;
      this.#runNext(instance);
    }
  }

  failQueued(error: TritonError): void {
    this.#queue.fail(error);
  }

  /** Resolves when no payload is running, or only ones that need not finish. */
  async idle(mustFinishOnly = false): Promise<void> {
    await Promise.all([...this.#parts.values()].map((part) => part.idle(mustFinishOnly)));
    if (this.#parts.size === 0) await this.#idleOf((one) => one.executor.mustFinish || !mustFinishOnly);
  }

  async #idleOf(counts: (instance: ModelInstance) => boolean): Promise<void> {
    const busy = () => this.#instances.some((one) => one.busy && counts(one));
    while (busy()) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  #openPart(instance: ModelInstance): void {
    const part = new InstanceGroup([instance], this.#clock, this.#limiter, this.#onWorn);
    this.#parts.set(instance, part);
    part.serve(this.#user.opened!(part));
  }

  #watch(instance: ModelInstance): void {
    instance.executor.onHealth = (healthy, reason) => this.#healthChanged(instance, healthy, reason);
    instance.executor.onRoom = () => this.#freed();
  }

  #runNext(instance: ModelInstance): boolean {
    const payload = this.#queue.take(this.#clock.now());
    if (payload !== undefined) void this.#run(instance, payload);
    return payload !== undefined;
  }

  async #run(instance: ModelInstance, payload: Payload): Promise<void> {
    instance.atWork.push(payload);
    this.#user.started?.(instance, payload);
    this.#user.slotFreed?.();
    await instance.run(payload);
    instance.atWork.splice(instance.atWork.indexOf(payload), 1);
    this.#user.ended?.(instance, payload);
    if (instance.worn) this.#onWorn(instance);
    if (instance.lease !== undefined) this.#limiter?.release(instance.lease, () => this.#freed());
    else this.#freed();
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  #freed(): void {
    this.#user.slotFreed?.();
    this.dispatch();
  }

  #healthChanged(instance: ModelInstance, healthy: boolean, reason?: TritonError): void {
    instance.healthChanged(healthy, reason);
    if (!healthy) this.#unstage(instance);
    this.#user.healthChanged?.(healthy, instance);
    if (healthy) {
      // A scheduler that forms batches only for idle instances has formed none.
      this.#freed();
      return;
    }
    this.dispatch();
    const dead = this.unhealthyReason;
    if (dead !== undefined) this.failQueued(dead);
  }

  /** Stages idle instances at the rate limiter until there is one for each waiting payload. */
  #stage(limiter: RateLimiter): void {
    while (this.#staged.size < this.#queue.size) {
      const free = this.serving.filter((one) => one.room > 0 && !this.#staged.has(one));
      const instance = RateLimiter.first(free);
      const lease = instance?.lease;
      if (instance === undefined || lease === undefined) return;
      this.#staged.add(instance);
      lease.granted = () => {
        this.#staged.delete(instance);
        if (!this.#runNext(instance)) limiter.release(lease, () => {}, false);
      };
      limiter.stage(lease);
    }
  }

  #unstage(instance: ModelInstance): void {
    if (this.#staged.delete(instance) && instance.lease !== undefined) this.#limiter?.unstage(instance.lease);
  }
}

/**
 * Chooses the instance for the next payload: the first of those with the most room. If none has room and there is at
 * most one instance, a busy one may get a payload that cannot grow any more. It starts this payload directly after its
 * current one, so it is not idle until this thread learns that it has finished.
 *
 * @returns undefined if the payload has to wait
 */
function chooseInstance(serving: readonly ModelInstance[], payload: Payload): ModelInstance | undefined {
  let idlest: ModelInstance | undefined;
  for (const instance of serving) {
    if (instance.room > (idlest?.room ?? 0)) idlest = instance;
  }
  if (idlest !== undefined) return idlest;
  const only = serving.length === 1 ? serving[0]! : undefined;
  return payload.complete && only?.takesAhead === true ? only : undefined;
}

/** Returns the reason why no instance can run; undefined while at least one can. */
function whyNoneCanRun(
  instances: readonly ModelInstance[],
  serving: readonly ModelInstance[],
): TritonError | undefined {
  let reason: TritonError | undefined;
  for (const instance of serving) {
    if (instance.unhealthyReason === undefined) return undefined;
    reason ??= instance.unhealthyReason;
  }
  // Instances that are about to be removed do not count: others will come.
  if (reason !== undefined || instances.length === 0 || !instances.every(({ passive }) => passive))
    return reason;
  return errorFor(
    "ALL_INSTANCES_PASSIVE",
    "all instances are passive, so the model cannot take requests: set passive: false on one",
  );
}

class PayloadQueue extends LinkedList<Payload> {
  /** Milliseconds that a payload must have waited before the next one may be merged into it; 0 for never. */
  mergeAfterMs = 0;
  maxBatchSize = 0;
  /** One function for all payloads, called when the last request of one is cancelled. */
  readonly #onEmpty: (empty: Payload) => void;

  /** @param onLeft called when a payload leaves because its last request was cancelled */
  constructor(onLeft: () => void) {
    super();
    this.#onEmpty = (empty) => {
      this.remove(empty);
      onLeft();
    };
  }

  override push(payload: Payload): void {
    payload.state = "queued";
    payload.onEmpty = this.#onEmpty;
    super.push(payload);
  }

  override remove(payload: Payload): boolean {
    payload.state = "taken";
    payload.onEmpty = undefined;
    return super.remove(payload);
  }

  /** Takes the oldest payload, and merges payloads into it that waited longer than `mergeAfterMs`. */
  take(now: number): Payload | undefined {
    const payload = this.head;
    if (payload === undefined) return undefined;
    this.remove(payload);
    if (this.mergeAfterMs > 0 && !payload.saturated) this.#mergeInto(payload, now);
    return payload;
  }

  fail(error: TritonError): void {
    for (const payload of this.all()) payload.fail(error);
  }

  #mergeInto(payload: Payload, now: number): void {
    for (let next = this.head; next !== undefined; next = this.head) {
      if (next.saturated || now - next.oldestQueueStart <= this.mergeAfterMs) return;
      if (payload.batchSize + next.batchSize > this.maxBatchSize || !payload.accepts(next)) return;
      this.remove(next);
      payload.absorb(next);
    }
  }
}

/** Loads and releases instances, including their registration at the rate limiter. */
class InstanceLoader {
  readonly #limiter: RateLimiter | undefined;
  readonly #held = new Set<ModelInstance>();
  stopped = false;

  constructor(limiter: RateLimiter | undefined) {
    this.#limiter = limiter;
  }

  /** Loads an instance; releases its resources if loading fails. */
  async load(instance: ModelInstance): Promise<void> {
    this.#assertOpen();
    this.#held.add(instance);
    try {
      if (this.#limiter !== undefined && !instance.passive) {
        instance.lease = this.#limiter.register(instance.placement);
      }
      await instance.executor.start();
      this.#assertOpen();
    } catch (error) {
      await this.release(instance);
      throw error;
    }
  }

  /** Loads instances. Rejects with the first failure, after the others have been stopped. */
  async loadAll(instances: readonly ModelInstance[]): Promise<void> {
    const results = await Promise.allSettled(instances.map((instance) => this.load(instance)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed === undefined) return;
    await this.stop();
    throw TritonError.from(failed.reason);
  }

  async release(instance: ModelInstance): Promise<void> {
    if (instance.lease !== undefined) this.#limiter?.unregister(instance.lease);
    instance.lease = undefined;
    await instance.executor.stop();
    this.#held.delete(instance);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all([...this.#held].map((instance) => this.release(instance)));
  }

  #assertOpen(): void {
    if (this.stopped) throw errorFor("MODEL_STOPPED", "the model was stopped while it was loading");
  }
}
