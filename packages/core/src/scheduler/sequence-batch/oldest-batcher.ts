import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import { defaultDynamicBatching } from "../../config/schema/defaults.js";

import type { InstanceGroup } from "../../instance/instance-group.js";
import { DynamicBatchScheduler } from "../dynamic-batch/dynamic-batch-scheduler.js";
import type { Slot } from "./sequence.js";
import { SlotBatcher, type SlotOwner } from "./slot-batcher.js";

/**
 * The oldest strategy at one instance: of every sequence in a slot one request at a time is handed to a dynamic
 * batcher, which joins them in the order in which they came.
 */
export class OldestBatcher extends SlotBatcher {
  readonly #inner: DynamicBatchScheduler;
  /** Slots with a request that the dynamic batcher or the instance has. */
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

  /** What the dynamic batcher has is lost too; nothing takes its place meanwhile. */
  #lose(): void {
    this.#losing = true;
    this.owner.lost(this);
    this.#losing = false;
    for (const slot of this.slots) this.changed(slot);
  }

  /** A sequence whose slot still has a request of the one before it waits for that. */
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
