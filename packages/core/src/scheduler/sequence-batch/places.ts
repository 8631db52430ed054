import { FreeSlots } from "./free-slots.js";
import type { Sequence } from "./sequence.js";
import type { Slot } from "./slot.js";

/**
 * Who has which slot, and who waits for one. A sequence gets the lowest free slot, or joins the backlog; a slot that
 * is left goes to the sequence that has waited longest.
 */
export class Places {
  readonly #free = new FreeSlots();
  readonly #backlog = new Set<Sequence>();
  readonly #onAssigned: (sequence: Sequence) => void;

  /** @param onAssigned called when a sequence has got its slot */
  constructor(slots: readonly Slot[], onAssigned: (sequence: Sequence) => void) {
    for (const slot of slots) this.#free.add(slot);
    this.#onAssigned = onAssigned;
  }

  /** Sequences without a slot, in the order in which they came. */
  get backlog(): readonly Sequence[] {
    return [...this.#backlog];
  }

  /** Gives a new sequence the lowest free slot, or a place in the backlog. */
  enter(sequence: Sequence): void {
    const slot = this.#free.take();
    if (slot === undefined) this.#backlog.add(sequence);
    else this.#assign(slot, sequence);
  }

  /** A sequence is over: whatever place it had is free. */
  leave(sequence: Sequence): void {
    this.#backlog.delete(sequence);
    const { slot } = sequence;
    if (slot === undefined) return;
    sequence.slot = undefined;
    slot.sequence = undefined;
    const next = this.#backlog.values().next().value;
    if (next === undefined) {
      this.#free.add(slot);
      return;
    }
    this.#backlog.delete(next);
    this.#assign(slot, next);
    slot.batcher.changed(slot);
  }

  #assign(slot: Slot, sequence: Sequence): void {
    slot.sequence = sequence;
    sequence.slot = slot;
    this.#onAssigned(sequence);
  }
}
