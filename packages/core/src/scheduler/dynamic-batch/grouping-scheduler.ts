import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import type { BatchGrouping } from "../../batch/variable-length.js";
import type { Clock } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import type { BatchKey } from "../../config/options/variable-length-options.js";

import type { InstanceGroup } from "../../instance/instance-group.js";
import type { InstanceGroupListener } from "../../instance/instance-group-listener.js";
import type { PendingRequest } from "../../request/pending-request.js";
import { ArrivalHold } from "../arrival-hold.js";
import type { LevelStatus } from "../priority-queue.js";
import { freePlacesOf } from "../queue-limits.js";
import type { QueueTotals } from "../request-queue.js";
import type { Scheduler } from "../scheduler.js";
import { BatchersInTurn } from "./batcher-line.js";
import { classifyRequest } from "./classify-request.js";
import { DynamicBatchScheduler } from "./dynamic-batch-scheduler.js";
import { OrderedResponses } from "./ordered-responses.js";

/** Number of idle groups that may be kept before a sweep. */
const IDLE_GROUPS = 64;

/**
 * Batches requests in groups (`batchBy`), and bounds batches by cost. Each group has a batcher with its own queue,
 * delay and payload. So a request of one group never ends or delays a batch of another. All batchers feed the same
 * instances. Their turn follows the order that their next requests would have in one queue. A group exists while it has
 * requests.
 *
 * ```
 * request --batchBy, cost--> group "128": dynamic batcher --+
 *                            group "512": dynamic batcher --+--> payloads --> instances
 * ```
 */
export class GroupingScheduler implements Scheduler, InstanceGroupListener {
  readonly #groups = new Map<BatchKey | undefined, DynamicBatchScheduler>();
  readonly #levels = new Map<number, QueueTotals>();
  readonly #ordered = new OrderedResponses();
  readonly #inTurn = new BatchersInTurn();
  /** Groups that have to look at their queues again when an instance takes their payload. */
  readonly #behindPayload = new Set<DynamicBatchScheduler>();
  #looking = false;
  #lookAgain = false;
  #stopped = false;
  #sweepAt = IDLE_GROUPS;
  /** Hold for tests, over the requests of all groups together. */
  readonly #hold: ArrivalHold;

  constructor(
    private readonly config: ModelConfig,
    private readonly instances: InstanceGroup,
    private readonly clock: Clock,
    private readonly deadlines: DeadlineQueue,
    private readonly grouping: BatchGrouping,
    private readonly padded: ReadonlySet<string>,
    holdUntil = 0,
  ) {
    this.#hold = new ArrivalHold(holdUntil);
    instances.listener = this;
  }

  get queuedCount(): number {
    let count = 0;
    for (const { size } of this.#levels.values()) count += size;
    return count;
  }

  /** The levels over all groups, highest first. */
  get levels(): readonly LevelStatus[] {
    const merged = new Map<number, LevelStatus>();
    for (const group of this.#groups.values()) {
      for (const level of group.levels) {
        const known = merged.get(level.priorityLevel);
        merged.set(level.priorityLevel, known === undefined ? level : together(known, level));
      }
    }
    return [...merged.values()].sort((a, b) => a.priorityLevel - b.priorityLevel);
  }

  /** Size limits apply to all groups together. */
  freePlaces(priority?: number): number {
    const batching = this.config.dynamicBatching!;
    return freePlacesOf(batching, (level) => this.#levels.get(level)?.size ?? 0, priority);
  }

  enqueue(request: PendingRequest): void {
    classifyRequest(request, this.grouping);
    this.#groupOf(request.batchKey).enqueue(request);
    if (this.#hold.isOver) return;
    this.#hold.arrived();
    if (!this.#hold.isOver) return;
    const held = [...this.#groups.values()].filter(({ head }) => head !== undefined);
    held.sort((a, b) => a.headPriority - b.headPriority || a.head!.queueStart - b.head!.queueStart);
    for (const group of held) group.release();
  }

  /** Lets the batchers of all groups look for work, in the order that their next requests would have in one queue. */
  slotFreed(): void {
    this.#lookAgain = true;
    if (this.#looking) return;
    this.#looking = true;
    try {
      while (this.#lookAgain) {
        this.#lookAgain = false;
        for (const group of [...this.#behindPayload]) if (group.hasSlot) group.slotFreed();
        this.#giveSlots();
      }
    } finally {
      this.#looking = false;
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#hold.end();
    for (const group of this.#groups.values()) group.stop();
  }

  failQueued(error: TritonError): void {
    for (const group of this.#groups.values()) group.failQueued(error);
    this.instances.failQueued(error);
  }

  #giveSlots(): void {
    for (let group = this.#inTurn.take(); group !== undefined; group = this.#inTurn.take()) {
      if (!group.hasSlot) {
        this.#inTurn.add(group);
        return;
      }
      group.slotFreed();
    }
  }

  #changed(group: DynamicBatchScheduler): void {
    if (group.needsSlot) this.#inTurn.add(group);
    if (group.waitsBehindPayload) this.#behindPayload.add(group);
    else this.#behindPayload.delete(group);
  }

  #groupOf(key: BatchKey | undefined): DynamicBatchScheduler {
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    this.#sweep();
    const { config, instances, clock, deadlines, padded } = this;
    const { maxBatchCost } = this.grouping;
    const onChange = () => this.#changed(group);
    const share = { maxBatchCost, padded, levels: this.#levels, ordered: this.#ordered, onChange };
    const held = this.#hold.isOver ? 0 : Number.POSITIVE_INFINITY;
    const group: DynamicBatchScheduler = new DynamicBatchScheduler(
      config,
      instances,
      clock,
      deadlines,
      held,
      share,
    );
    // Each batcher registers itself as the only listener.
    instances.listener = this;
    if (this.#stopped) group.stop();
    this.#groups.set(key, group);
    return group;
  }

  /** Removes idle groups, once there are twice as many groups as were busy at the last sweep. */
  #sweep(): void {
    if (this.#groups.size < this.#sweepAt) return;
    for (const [key, group] of this.#groups) {
      if (group.queuedCount > 0) continue;
      group.hurry();
      this.#groups.delete(key);
    }
    this.#sweepAt = 2 * this.#groups.size + IDLE_GROUPS;
  }
}

function together(a: LevelStatus, b: LevelStatus): LevelStatus {
  return {
    priorityLevel: a.priorityLevel,
    queued: a.queued + b.queued,
    delayed: a.delayed + b.delayed,
    rows: a.rows + b.rows,
    oldestQueueStart: Math.min(a.oldestQueueStart, b.oldestQueueStart),
  };
}
