import { Heap } from "../heap.js";
import type { Sequence, Slot, SlotHost } from "./sequence.js";

/**
 * Assigns slots to sequences, and keeps the backlog. A new sequence gets the lowest free slot, of a healthy instance if
 * possible, or joins the backlog. A slot that becomes free goes to the sequence that has waited longest. Slots are
 * added and removed with their instances.
 */
export class Places {
  /** The free slots. */
  readonly #free = new Heap<Slot>((a, b) => a.rank - b.rank);
  /** Free slots at instances that were down at the last look. */
  #aside: Slot[] = [];
  readonly #closed = new WeakSet<SlotHost>();
  readonly #backlog = new Set<Sequence>();
  readonly #onAssigned: (sequence: Sequence) => void;

  /** @param onAssigned called when a sequence has been assigned a slot */
  constructor(onAssigned: (sequence: Sequence) => void) {
    this.#onAssigned = onAssigned;
  }

  /** Adds the slots of a new instance, and assigns them to sequences in the backlog. */
  open({ slots }: SlotHost): void {
    for (const slot of slots) this.#give(slot);
  }

  /** Stops assigning the slots of an instance. Sequences in its slots stay there. */
  close(batcher: SlotHost): void {
    this.#closed.add(batcher);
  }

  /** Sequences without a slot, in order of arrival. */
  get backlog(): readonly Sequence[] {
    return [...this.#backlog];
  }

  /** Gives a new sequence the lowest free slot, or a place in the backlog. */
  enter(sequence: Sequence): void {
    const slot = this.#takeFree();
    if (slot === undefined) this.#backlog.add(sequence);
    else this.#assign(slot, sequence);
  }

  /** Frees the place of a sequence that is over. */
  leave(sequence: Sequence): void {
    this.#backlog.delete(sequence);
    const { slot } = sequence;
    if (slot === undefined) return;
    sequence.slot = undefined;
    slot.sequence = undefined;
    this.#give(slot);
  }

  #give(slot: Slot): void {
    if (this.#closed.has(slot.batcher)) return;
    const next = this.#backlog.values().next().value;
    if (next === undefined) {
      this.#free.add(slot);
      return;
    }
    this.#backlog.delete(next);
    this.#assign(slot, next);
    slot.batcher.changed(slot);
  }

  #takeFree(): Slot | undefined {
    for (const slot of this.#aside) this.#free.add(slot);
    this.#aside = [];
    for (let slot = this.#free.take(); slot !== undefined; slot = this.#free.take()) {
      if (this.#closed.has(slot.batcher)) continue;
      if (slot.batcher.healthy) return slot;
      this.#aside.push(slot);
    }
    return this.#aside.shift();
  }

  #assign(slot: Slot, sequence: Sequence): void {
    slot.sequence = sequence;
    sequence.slot = slot;
    this.#onAssigned(sequence);
  }
}
