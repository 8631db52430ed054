import type { SequenceInfo } from "../../request/sequence-info.js";

/**
 * The sequences in the slots of an instance, inside its worker: messages carry copies, and this gives all requests of
 * a sequence the same object again. Keeps one for each slot.
 */
export class SequencesOfSlots {
  readonly #bySlot = new Map<number, SequenceInfo>();

  /** The one object of the sequence that a request belongs to. */
  of(request: {
    readonly sequence: SequenceInfo | undefined;
    readonly sequenceStart: boolean;
  }): SequenceInfo | undefined {
    const copy = request.sequence;
    if (copy === undefined) return undefined;
    const known = this.#bySlot.get(copy.slot);
    if (known !== undefined && !request.sequenceStart) return known;
    this.#bySlot.set(copy.slot, copy);
    return copy;
  }
}
