import type { Slot } from "./slot.js";

/** The slots that nobody has: a binary heap by rank. */
export class FreeSlots {
  readonly #heap: Slot[] = [];

  add(slot: Slot): void {
    const heap = this.#heap;
    let at = heap.push(slot) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.rank <= slot.rank) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = slot;
  }

  /** Takes the lowest slot; undefined when there is none. */
  take(): Slot | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || first === last) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && heap[child + 1]!.rank < heap[child]!.rank) child++;
      if (heap[child]!.rank >= last.rank) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}
