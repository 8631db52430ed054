import type { Tensors } from "../../batch/merge-inputs.js";
import { Payload } from "../../batch/payload.js";
import { EqualInputsRule } from "../../batch/required-equal-inputs.js";
import type { Clock, Timer } from "../../clock/clock.js";
import type { ModelConfig } from "../../config/model-config.js";
import type { TritonError } from "../../errors/triton-error.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { InstanceGroupListener } from "../../instance/instance-group-listener.js";
import type { ControlInputs } from "./control-inputs.js";
import { type DirectRules, formDirectBatch } from "./form-direct-batch.js";
import { nullInputs, nullRequest } from "./null-request.js";
import type { Slot, SlotBatcher, SlotOwner } from "./slot.js";

/**
 * The direct strategy at one instance: the slot of a sequence is its row of the batch. One batch at a time; the next
 * is formed when the instance is idle again, at the end of the event loop's turn, so that clients who have just got
 * their answers can join it with their next requests.
 */
export class DirectBatcher implements SlotBatcher, InstanceGroupListener {
  readonly slots: Slot[] = [];
  atWork = 0;
  onEmpty: (() => void) | undefined;
  readonly queuedCount = 0;
  readonly #instance: InstanceGroup;
  readonly #owner: SlotOwner;
  readonly #controls: ControlInputs;
  readonly #clock: Clock;
  #rules: DirectRules;
  #lookDeferred = false;
  #timer: Timer | undefined;

  /** @param instance the group of this one instance */
  constructor(
    config: ModelConfig,
    instance: InstanceGroup,
    owner: SlotOwner,
    controls: ControlInputs,
    clock: Clock,
  ) {
    this.#instance = instance;
    this.#owner = owner;
    this.#controls = controls;
    this.#clock = clock;
    const { maxQueueDelayMicroseconds = 0, minimumSlotUtilization = 0 } =
      config.sequenceBatching?.direct ?? {};
    this.#rules = {
      maxQueueDelayMs: maxQueueDelayMicroseconds / 1000,
      minimumSlotUtilization,
      equalInputs: new EqualInputsRule(config),
    };
    instance.listener = this;
  }

  get healthy(): boolean {
    return this.#instance.instances[0]!.healthy;
  }

  changed(): void {
    if (this.#lookDeferred) return;
    this.#lookDeferred = true;
    this.#clock.defer(() => {
      this.#lookDeferred = false;
      this.#look();
    });
  }

  slotFreed(): void {
    this.changed();
  }

  healthChanged(healthy: boolean): void {
    if (healthy) this.changed();
    else this.#owner.lost(this);
  }

  hurry(): void {
    this.#rules = { ...this.#rules, maxQueueDelayMs: 0 };
    this.changed();
  }

  failQueued(error: TritonError): void {
    this.#instance.failQueued(error);
  }

  #look(): void {
    this.#timer?.cancel();
    if (this.#owner.held || this.#instance.idleInstances === 0) return;
    const heads = this.slots.map((slot) => this.#owner.head(slot));
    const { rows, waitMs } = formDirectBatch(heads, this.#clock.now(), this.#rules);
    if (waitMs !== undefined) this.#timer = this.#clock.setTimer(waitMs, () => this.#look());
    if (rows.length > 0) this.#run(rows);
  }

  #run(rows: readonly boolean[]): void {
    const slot = this.slots[rows.indexOf(true)]!;
    const first = slot.sequence!.head!;
    const missing = rows.includes(false) ? this.#nullInputsLike(this.#owner.head(slot)!.inputs) : undefined;
    const payload = new Payload();
    payload.saturated = true;
    rows.forEach((runs, i) => {
      payload.add(runs ? this.#owner.take(this.slots[i]!) : nullRequest(first, missing!));
    });
    this.#instance.enqueue(payload);
  }

  #nullInputsLike(inputs: Tensors): Tensors {
    const none = { correlationId: undefined, sequenceStart: false, sequenceEnd: false, ready: false };
    return this.#controls.addTo(nullInputs(inputs), none);
  }
}
