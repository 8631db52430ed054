import type { InstanceGroup } from "../../instance/instance-group.js";
import type { Places } from "./places.js";
import type { SlotHost } from "./sequence.js";
import type { SlotBatcher } from "./slot-batcher.js";

/** Slots are given away by number, and those of one number by instance: no model has had as many as this. */
const MOST_INSTANCES = 2 ** 32;

/** The batchers of all instances: each comes with its instance, and goes when it has no sequence left. */
export class InstanceBatchers {
  readonly #byGroup = new Map<InstanceGroup, SlotBatcher>();
  #instancesSoFar = 0;

  /** @param slotCount slots of each instance */
  constructor(
    private readonly make: (group: InstanceGroup) => SlotBatcher,
    private readonly slotCount: number,
    private readonly places: Places,
  ) {}

  /** All of them. */
  [Symbol.iterator](): IterableIterator<SlotBatcher> {
    return this.#byGroup.values();
  }

  /** There is an instance more. */
  open(group: InstanceGroup): void {
    const batcher = this.make(group);
    const index = this.#instancesSoFar++;
    for (let number = 0; number < this.slotCount; number++) {
      batcher.slots.push({ batcher, number, rank: number * MOST_INSTANCES + index, sequence: undefined });
    }
    this.#byGroup.set(group, batcher);
    this.places.open(batcher);
  }

  /** An instance is to go: its slots get no new sequences. Resolves when it has none left, and no request. */
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

/** Tells that an instance may go, once it has no sequence and no request. */
export function checkEmpty({ onEmpty, atWork, slots }: SlotHost): void {
  if (onEmpty !== undefined && atWork === 0 && slots.every((slot) => slot.sequence === undefined)) onEmpty();
}
