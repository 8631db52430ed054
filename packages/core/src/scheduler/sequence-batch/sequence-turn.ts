import type { Tensors } from "../../batch/merge-inputs.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { RequestObserver } from "../../request/request-observer.js";
import type { SequenceInfo } from "../../request/sequence-info.js";
import type { ImplicitStates } from "./implicit-states.js";
import { checkEmpty } from "./instance-batchers.js";
import type { Sequence, Slot } from "./sequence.js";

/** Callbacks from a turn to the scheduler. */
export interface TurnOwner {
  /** Set for a model with implicit state. */
  readonly states: ImplicitStates | undefined;
  /** The instance has finished with a request of a sequence. `again` is true when the model wants to run it again. */
  released(sequence: Sequence, request: PendingRequest, again: boolean): void;
}

/** One request between leaving its sequence and its release by the instance. */
export class SequenceTurn implements RequestObserver<PendingRequest> {
  readonly #owner: TurnOwner;
  readonly #sequence: Sequence;
  readonly #slot: Slot;
  readonly #info: SequenceInfo;

  /** @param info the sequence as the model knows it during this turn */
  constructor(owner: TurnOwner, sequence: Sequence, slot: Slot, info: SequenceInfo) {
    this.#owner = owner;
    this.#sequence = sequence;
    this.#slot = slot;
    this.#info = info;
    slot.batcher.left(slot);
  }

  outputs(_request: PendingRequest, outputs: Tensors): void {
    this.#owner.states?.keep(this.#info, outputs);
  }

  released(request: PendingRequest, again: boolean): void {
    // A request that is run again gets another turn.
    if (again) request.ignore(this);
    const { batcher } = this.#slot;
    batcher.released(this.#slot);
    this.#owner.released(this.#sequence, request, again);
    checkEmpty(batcher);
    batcher.goOn(this.#slot);
  }
}
