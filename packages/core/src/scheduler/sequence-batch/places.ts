import { Heap } from "../heap.js";
import type { Sequence, Slot, SlotHost } from "./sequence.js";

/**
 * Who has which slot, and who waits for one. A sequence gets the lowest free slot, of an instance that is up if there
 * is any, or joins the backlog; a slot that is left goes to the sequence that has waited longest. Slots come and go
 * with their instances.
 */
export class Places {
  /** The slots that nobody has. */
  readonly #free = new Heap<Slot>((a, b) => a.rank - b.rank);
  /** Free slots at instances that were down when they were looked at. */
  #aside: Slot[] = [];
  readonly #closed = new WeakSet<SlotHost>();
  readonly #backlog = new Set<Sequence>();
  readonly #onAssigned: (sequence: Sequence) => void;

  /** @param onAssigned called when a sequence has got its slot */
  constructor(onAssigned: (sequence: Sequence) => void) {
    this.#onAssigned = onAssigned;
  }

  /** There is an instance more: those who wait get its slots. */
  open({ slots }: SlotHost): void {
    for (const slot of slots) this.#give(slot);
  }

  /** The slots of an instance are given away no more; who has one keeps it. */
  close(batcher: SlotHost): void {
    this.#closed.add(batcher);
  }

  /** Sequences without a slot, in the order in which they came. */
  get backlog(): readonly Sequence[] {
    return [...this.#backlog];
  }

  /** Gives a new sequence the lowest free slot, or a place in the backlog. */
  enter(sequence: Sequence): void {
    const slot = this.#takeFree();
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
