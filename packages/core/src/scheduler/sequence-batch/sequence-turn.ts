import type { Tensors } from "../../batch/merge-inputs.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { RequestObserver } from "../../request/request-observer.js";
import type { SequenceInfo } from "../../request/sequence-info.js";
import type { Sequence } from "./sequence.js";
import type { Slot } from "./slot.js";

/** Hears of requests that have left their sequence. */
export interface TurnOwner {
  /** The model has made outputs. */
  made(turn: SequenceTurn, outputs: Tensors): void;
  /** The instance is done with the request; `again` when the model wants to see it once more. */
  released(turn: SequenceTurn, request: PendingRequest, again: boolean): void;
}

/** What the scheduler of sequences knows of a request that has left for an instance. */
export class SequenceTurn implements RequestObserver<PendingRequest> {
  readonly #owner: TurnOwner;

  constructor(
    owner: TurnOwner,
    readonly sequence: Sequence,
    readonly slot: Slot,
    /** The sequence as the model knows it during this turn. */
    readonly info: SequenceInfo,
  ) {
    this.#owner = owner;
  }

  outputs(_request: PendingRequest, outputs: Tensors): void {
    this.#owner.made(this, outputs);
  }

  released(request: PendingRequest, again: boolean): void {
    // A request that comes back gets another turn.
    if (again) request.ignore(this);
    this.#owner.released(this, request, again);
  }
}
