import type { Payload } from "../batch/payload.js";
import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelInstance } from "./model-instance.js";

/** What a scheduler hears from the instances it feeds. */
export interface InstanceGroupListener {
  /** A queued payload was taken or given up, or an execution ended: there may be room for another payload. */
  slotFreed(): void;
  /** An instance broke down, or came back. */
  healthChanged?(healthy: boolean): void;
}

/**
 * All instances of a model version and the queue of payloads in front of them. An idle instance takes the
 * oldest payload; nothing is handed to a busy one.
 *
 * ```
 * scheduler --enqueue--> [payload, payload, ...] <--take-- idle instance
 * ```
 */
export class InstanceGroup {
  readonly instances: readonly ModelInstance[];
  /** How long a payload must have waited before an instance may join the next one to it; 0 for never. */
  mergeAfterMs = 0;
  maxBatchSize = 0;
  listener: InstanceGroupListener | undefined;

  readonly #clock: Clock;
  /** A set keeps the order of arrival and lets a payload leave from any place. */
  readonly #queue = new Set<Payload>();
  #idleWaiters: (() => void)[] = [];
  #parts: readonly InstanceGroup[] = [];

  constructor(instances: readonly ModelInstance[], clock: Clock) {
    this.instances = instances;
    this.#clock = clock;
    for (const instance of instances) {
      instance.executor.onHealth = (healthy, reason) => this.#healthChanged(instance, healthy, reason);
    }
  }

  /**
   * A group for each instance, with a queue of its own: for a scheduler that chooses the instance itself, and that
   * gives this group no payloads from then on.
   */
  split(): readonly InstanceGroup[] {
    this.#parts = this.instances.map((instance) => new InstanceGroup([instance], this.#clock));
    return this.#parts;
  }

  /** Loads every instance; rejects with the first failure, after the others have been stopped. */
  async start(): Promise<void> {
    const results = await Promise.allSettled(this.instances.map((instance) => instance.executor.start()));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) {
      await this.stop();
      throw TritonError.from(failed.reason);
    }
    for (const instance of this.instances) instance.healthy = true;
    this.#dispatch();
  }

  async stop(): Promise<void> {
    await Promise.all(this.instances.map((instance) => instance.executor.stop()));
  }

  /** Payloads that wait for an instance. */
  get queuedPayloads(): number {
    return this.#queue.size;
  }

  /** Instances that could take a payload now. */
  get idleInstances(): number {
    return this.instances.filter((instance) => instance.healthy && !instance.busy).length;
  }

  /** Why no instance can run anything; undefined while one can. */
  get unhealthyReason(): TritonError | undefined {
    const reasons = this.instances.map((instance) => instance.unhealthyReason);
    return reasons.every((reason) => reason !== undefined) ? reasons[0] : undefined;
  }

  enqueue(payload: Payload): void {
    payload.state = "queued";
    payload.onEmpty = (empty) => {
      this.#leave(empty);
      this.listener?.slotFreed();
    };
    this.#queue.add(payload);
    this.#dispatch();
    const dead = this.unhealthyReason;
    if (dead !== undefined) payload.fail(dead);
  }

  /** Fails the requests of all payloads that wait. */
  failQueued(error: TritonError): void {
    for (const payload of this.#queue) payload.fail(error);
  }

  /** Resolves when nothing runs any more, or nothing that must be waited for. */
  async idle(mustFinishOnly = false): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.idle(mustFinishOnly)));
    if (this.#parts.length > 0) return;
    const busy = () => this.instances.some((one) => one.busy && (one.executor.mustFinish || !mustFinishOnly));
    while (busy()) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  #dispatch(): void {
    for (const instance of this.instances) {
      if (!instance.healthy || instance.busy) continue;
      const payload = this.#take();
      if (payload === undefined) return;
      void this.#run(instance, payload);
    }
  }

  async #run(instance: ModelInstance, payload: Payload): Promise<void> {
    instance.busy = true;
    this.listener?.slotFreed();
    await instance.run(payload);
    instance.busy = false;
    this.listener?.slotFreed();
    this.#dispatch();
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  /** The oldest payload, joined by those that waited too long to stay small. */
  #take(): Payload | undefined {
    const payload = this.#head;
    if (payload === undefined) return undefined;
    this.#leave(payload);
    if (this.mergeAfterMs > 0 && !payload.saturated) this.#mergeInto(payload);
    return payload;
  }

  #mergeInto(payload: Payload): void {
    const now = this.#clock.now();
    for (let next = this.#head; next !== undefined; next = this.#head) {
      if (next.saturated || now - next.oldestQueueStart <= this.mergeAfterMs) return;
      if (payload.batchSize + next.batchSize > this.maxBatchSize || !payload.accepts(next)) return;
      this.#leave(next);
      payload.absorb(next);
    }
  }

  get #head(): Payload | undefined {
    return this.#queue.values().next().value;
  }

  #leave(payload: Payload): void {
    payload.state = "taken";
    payload.onEmpty = undefined;
    this.#queue.delete(payload);
  }

  #healthChanged(instance: ModelInstance, healthy: boolean, reason?: TritonError): void {
    instance.healthy = healthy;
    instance.unhealthyReason = healthy ? undefined : reason;
    this.listener?.healthChanged?.(healthy);
    if (healthy) {
      this.#dispatch();
      return;
    }
    const dead = this.unhealthyReason;
    if (dead !== undefined) this.failQueued(dead);
  }
}
