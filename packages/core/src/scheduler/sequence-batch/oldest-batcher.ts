import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import { defaultDynamicBatching } from "../../config/schema/defaults.js";

import type { InstanceGroup } from "../../instance/instance-group.js";
import { DynamicBatchScheduler } from "../dynamic-batch/dynamic-batch-scheduler.js";
import type { Slot } from "./sequence.js";
import { SlotBatcher, type SlotOwner } from "./slot-batcher.js";

/**
 * The oldest strategy at one instance. Each sequence in a slot hands one request at a time to a dynamic batcher, which
 * joins them in order of arrival.
 */
export class OldestBatcher extends SlotBatcher {
  readonly #inner: DynamicBatchScheduler;
  /** Slots with a request at the dynamic batcher or the instance. */
  readonly #inFlight = new Set<Slot>();
  #losing = false;

  /** @param instance the group of this one instance */
  constructor(
    config: ModelConfig,
    instance: InstanceGroup,
    owner: SlotOwner,
    clock: Clock,
    deadlines: DeadlineQueue,
    holdUntil: number,
  ) {
    super(instance, owner, clock);
    const { preferredBatchSize, maxQueueDelayMicroseconds, preserveOrdering } =
      config.sequenceBatching!.oldest!;
    const dynamicBatching = {
      ...defaultDynamicBatching(),
      preferredBatchSize,
      maxQueueDelayMicroseconds,
      preserveOrdering,
    };
    const inner = new DynamicBatchScheduler(
      { ...config, dynamicBatching },
      instance,
      clock,
      deadlines,
      holdUntil,
    );
    this.#inner = inner;
    instance.listener = {
      slotFreed: () => inner.slotFreed(),
      healthChanged: (healthy) => {
        if (healthy) inner.slotFreed();
        else this.#lose();
      },
    };
  }

  get queuedCount(): number {
    return this.#inner.queuedCount;
  }

  /**
   * Handles the failure of the instance. Requests at the dynamic batcher are lost too, and no others are handed over
   * meanwhile.
   */
  #lose(): void {
    this.#losing = true;
    this.owner.lost(this);
    this.#losing = false;
    for (const slot of this.slots) this.changed(slot);
  }

  /**
   * Hands over the next request. If the slot still has a request of the previous sequence in flight, the new sequence
   * waits for it.
   */
  changed(slot: Slot): void {
    while (!this.#losing && slot.sequence?.head !== undefined && !this.#inFlight.has(slot)) {
      const request = this.owner.take(slot);
      request.batcherStart = this.clock.now();
      this.#inner.enqueue(request);
    }
  }

  override left(slot: Slot): void {
    super.left(slot);
    this.#inFlight.add(slot);
  }

  override released(slot: Slot): void {
    super.released(slot);
    this.#inFlight.delete(slot);
  }

  override goOn(slot: Slot): void {
    this.changed(slot);
  }

  hurry(): void {
    this.#inner.hurry();
  }

  failQueued(error: TritonError): void {
    this.#inner.failQueued(error);
  }
}
