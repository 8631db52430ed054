import { Heap } from "../heap.js";
import type { DynamicBatchScheduler } from "./dynamic-batch-scheduler.js";

/** Position of a batcher in the line, by its next request when it was added. */
interface Place {
  readonly batcher: DynamicBatchScheduler;
  readonly priority: number;
  readonly start: number;
  /** Sequence number: of equal places, the earlier one goes first. */
  readonly number: number;
}

/**
 * Line of batchers that have requests and no slot for them, in the order that their next requests would have in one
 * queue. A next request may change while it waits, so places are checked when their turn comes.
 */
export class BatchersInTurn {
  readonly #line = new Heap<Place>(compare);
  /** The valid place of each batcher in the line. */
  readonly #places = new Map<DynamicBatchScheduler, Place>();
  #added = 0;

  /** Gives a batcher a place in the line, or a better one if its next request now comes earlier. */
  add(batcher: DynamicBatchScheduler): void {
    const { head, headPriority: priority } = batcher;
    if (head === undefined) return;
    const place = { batcher, priority, start: head.queueStart, number: this.#added };
    const known = this.#places.get(batcher);
    if (known !== undefined && compare(known, place) <= 0) return;
    this.#added++;
    this.#places.set(batcher, place);
    this.#line.add(place);
  }

  /** Takes the batcher whose turn it is; undefined when none waits for a slot. */
  take(): DynamicBatchScheduler | undefined {
    for (let place = this.#line.take(); place !== undefined; place = this.#line.take()) {
      const { batcher, priority, start } = place;
      if (this.#places.get(batcher) !== place) continue;
      this.#places.delete(batcher);
      if (!batcher.needsSlot) continue;
      if (batcher.headPriority === priority && batcher.head?.queueStart === start) return batcher;
      this.add(batcher);
    }
    return undefined;
  }
}

function compare(a: Place, b: Place): number {
  return a.priority - b.priority || a.start - b.start || a.number - b.number;
}
