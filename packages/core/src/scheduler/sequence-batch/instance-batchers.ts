import type { InstanceGroup } from "../../instance/instance-group.js";
import type { SequenceCounts } from "../scheduler.js";
import type { Places } from "./places.js";
import type { SlotHost } from "./sequence.js";
import type { SlotBatcher } from "./slot-batcher.js";

/** Upper bound of the instances that a model has over time: slots are assigned by number first, then by instance. */
const MOST_INSTANCES = 2 ** 32;

/** The batchers of all instances. A batcher is added with its instance, and removed when it has no sequence left. */
export class InstanceBatchers {
  readonly #byGroup = new Map<InstanceGroup, SlotBatcher>();
  #instancesSoFar = 0;

  /** @param slotCount slots of each instance */
  constructor(
    private readonly make: (group: InstanceGroup) => SlotBatcher,
    private readonly slotCount: number,
    private readonly places: Places,
  ) {}

  /** Iterates over all batchers. */
  [Symbol.iterator](): IterableIterator<SlotBatcher> {
    return this.#byGroup.values();
  }

  /** Live sequences, by where they are. */
  get sequences(): SequenceCounts {
    let inSlots = 0;
    for (const { slots } of this) {
      for (const slot of slots) if (slot.sequence !== undefined) inSlots++;
    }
    return { inSlots, inBacklog: this.places.backlog.length };
  }

  /** Adds a batcher for a new instance. */
  open(group: InstanceGroup): void {
    const batcher = this.make(group);
    const index = this.#instancesSoFar++;
    for (let number = 0; number < this.slotCount; number++) {
      batcher.slots.push({ batcher, number, rank: number * MOST_INSTANCES + index, sequence: undefined });
    }
    this.#byGroup.set(group, batcher);
    this.places.open(batcher);
  }

  /** Removes an instance, whose slots get no new sequences. Resolves when it has no sequence and no request left. */
  async close(group: InstanceGroup): Promise<void> {
    const batcher = this.#byGroup.get(group)!;
    this.places.close(batcher);
    await new Promise<void>((resolve) => {
      batcher.onEmpty = resolve;
      checkEmpty(batcher);
    });
    this.#byGroup.delete(group);
  }
}

/** Calls `onEmpty` once an instance that is to be removed has no sequence and no request. */
export function checkEmpty({ onEmpty, atWork, slots }: SlotHost): void {
  if (onEmpty !== undefined && atWork === 0 && slots.every((slot) => slot.sequence === undefined)) onEmpty();
}
