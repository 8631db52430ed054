import type { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { WaitingRequest } from "./implicit-states.js";
import type { Slot, SlotHost } from "./sequence.js";

/** Makes batches of the requests in the slots of one instance. */
export abstract class SlotBatcher implements SlotHost {
  readonly slots: Slot[] = [];
  #atWork = 0;
  onEmpty: (() => void) | undefined;

  /** @param instance the group of this one instance */
  constructor(
    protected readonly instance: InstanceGroup,
    protected readonly owner: SlotOwner,
    protected readonly clock: Clock,
  ) {}

  get healthy(): boolean {
    return this.instance.instances[0]!.healthy;
  }

  get atWork(): number {
    return this.#atWork;
  }

  left(_slot: Slot): void {
    this.#atWork++;
  }

  released(_slot: Slot): void {
    this.#atWork--;
  }

  goOn(_slot: Slot): void {}

  /** Requests that have left their sequence, and that no instance has taken. */
  abstract get queuedCount(): number;
  abstract changed(slot: Slot): void;
  /** Ends all waiting for further requests, because no more will arrive. */
  abstract hurry(): void;
  abstract failQueued(error: TritonError): void;
}

/** Callbacks from a batcher to the scheduler. */
export interface SlotOwner {
  /** True during a hold for tests: nothing may run. */
  readonly held: boolean;
  /** The next request of a slot, with the states that it would get. */
  head(slot: Slot): WaitingRequest | undefined;
  /** Takes the first request of a slot's sequence for the instance, with its controls and states. */
  take(slot: Slot): PendingRequest;
  /** The instance failed, and the state of its sequences is lost. */
  lost(batcher: SlotBatcher): void;
}
