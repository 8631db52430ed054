import type { SequenceInfo } from "../../request/sequence-info.js";

/**
 * The sequences in the slots of an instance, inside its worker. Messages carry copies; this restores one shared object
 * for all requests of a sequence. Keeps one object for each slot.
 */
export class SequencesOfSlots {
  readonly #bySlot = new Map<number, SequenceInfo>();

  /** The shared object of a request's sequence. */
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
