import type { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { WaitingRequest } from "./implicit-states.js";
import type { Sequence } from "./sequence.js";

/** A place for one sequence at one instance. */
export interface Slot {
  readonly batcher: SlotBatcher;
  /** Position among the slots of the instance; in the direct strategy the row of the batch. */
  readonly number: number;
  /** Free slots are given away by this, lowest first: by number, then by instance. */
  readonly rank: number;
  sequence: Sequence | undefined;
}

/** Makes batches of what waits in the slots of one instance. */
export abstract class SlotBatcher {
  readonly slots: Slot[] = [];
  #atWork = 0;
  /** Set when the instance is to go: called when no sequence and no request is left. */
  onEmpty: (() => void) | undefined;

  /** @param instance the group of this one instance */
  constructor(
    protected readonly instance: InstanceGroup,
    protected readonly owner: SlotOwner,
    protected readonly clock: Clock,
  ) {}

  /** False while the instance is down. */
  get healthy(): boolean {
    return this.instance.instances[0]!.healthy;
  }

  /** Requests that have left their sequence and are not done. */
  get atWork(): number {
    return this.#atWork;
  }

  /** A request of a slot has left its sequence. */
  left(_slot: Slot): void {
    this.#atWork++;
  }

  /** The instance is done with it. */
  released(_slot: Slot): void {
    this.#atWork--;
  }

  /** The scheduler, too, knows that the instance is done with it. */
  goOn(_slot: Slot): void {}

  /** Requests that have left their sequence and no instance has taken. */
  abstract get queuedCount(): number;
  /** Something changed in a slot: a request came, or another sequence. */
  abstract changed(slot: Slot): void;
  /** Nobody else will come: nothing waits for others any more. */
  abstract hurry(): void;
  abstract failQueued(error: TritonError): void;
}

/** What a batcher asks of the scheduler. */
export interface SlotOwner {
  /** True while nothing may run: a hold for tests. */
  readonly held: boolean;
  /** The request whose turn is next in a slot, with the states that it would get. */
  head(slot: Slot): WaitingRequest | undefined;
  /** The first request of a slot's sequence leaves for the instance, with its controls and states. */
  take(slot: Slot): PendingRequest;
  /** The instance broke down, and what it knew about its sequences is lost. */
  lost(batcher: SlotBatcher): void;
}
