import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import { elementByteSize, elementCount, Tensor } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import { Payload } from "../../batch/payload.js";
import { EqualInputsRule } from "../../batch/required-equal-inputs.js";
import type { Clock, Timer } from "../../clock/clock.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { InstanceGroupListener } from "../../instance/instance-group-listener.js";
import { PendingRequest } from "../../request/pending-request.js";
import type { ControlInputs } from "./control-inputs.js";
import { type DirectRules, formDirectBatch } from "./form-direct-batch.js";
import { SlotBatcher, type SlotOwner } from "./slot-batcher.js";

/**
 * The direct strategy at one instance: the slot of a sequence is its row of the batch. One batch runs at a time. The
 * next batch is formed when the instance is idle again, at the end of the event loop's turn. So clients that have just
 * got their answers can join it with their next requests.
 */
export class DirectBatcher extends SlotBatcher implements InstanceGroupListener {
  readonly #controls: ControlInputs;
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
    super(instance, owner, clock);
    this.#controls = controls;
    const { maxQueueDelayMicroseconds = 0, minimumSlotUtilization = 0 } =
      config.sequenceBatching?.direct ?? {};
    this.#rules = {
      maxQueueDelayMs: maxQueueDelayMicroseconds / 1000,
      minimumSlotUtilization,
      equalInputs: new EqualInputsRule(config),
    };
    instance.listener = this;
  }

  /** Always 0: requests that leave their sequence run at once. */
  get queuedCount(): number {
    return 0;
  }

  changed(): void {
    if (this.#lookDeferred) return;
    this.#lookDeferred = true;
    this.clock.defer(() => {
      this.#lookDeferred = false;
      this.#look();
    });
  }

  slotFreed(): void {
    this.changed();
  }

  healthChanged(healthy: boolean): void {
    if (healthy) this.changed();
    else this.owner.lost(this);
  }

  hurry(): void {
    this.#rules = { ...this.#rules, maxQueueDelayMs: 0 };
    this.changed();
  }

  failQueued(error: TritonError): void {
    this.instance.failQueued(error);
  }

  #look(): void {
    this.#timer?.cancel();
    if (this.owner.held || this.instance.idleInstances === 0) return;
    const heads = this.slots.map((slot) => this.owner.head(slot));
    const { rows, waitMs } = formDirectBatch(heads, this.clock.now(), this.#rules);
    if (waitMs !== undefined) this.#timer = this.clock.setTimer(waitMs, () => this.#look());
    if (rows.length > 0) this.#run(rows);
  }

  #run(rows: readonly boolean[]): void {
    const slot = this.slots[rows.indexOf(true)]!;
    const first = slot.sequence!.head!;
    const missing = rows.includes(false) ? this.#nullInputsLike(this.owner.head(slot)!.inputs) : undefined;
    const payload = new Payload();
    payload.saturated = true;
    rows.forEach((runs, i) => {
      payload.add(runs ? this.owner.take(this.slots[i]!) : nullRequest(first, missing!));
    });
    this.instance.enqueue(payload);
  }

  #nullInputsLike(inputs: Tensors): Tensors {
    const none = { correlationId: undefined, sequenceStart: false, sequenceEnd: false, ready: false };
    return this.#controls.addTo(nullInputs(inputs), none);
  }
}

/**
 * Makes a request that fills a slot. Its inputs have the shapes of a request that runs, with all zeros or empty
 * strings, and it has no caller.
 */
function nullRequest(like: PendingRequest, inputs: Tensors): PendingRequest {
  const request = new PendingRequest({ inputs, ready: false }, like.modelName, () => {});
  request.batchSize = like.batchSize;
  return request;
}

/** Makes inputs of the same shapes, with all zeros or empty strings. */
function nullInputs(inputs: Tensors): Tensors {
  return new Map([...inputs].map(([name, tensor]) => [name, zeros(tensor)]));
}

function zeros({ datatype, shape }: Tensor): Tensor {
  const count = elementCount(shape);
  if (datatype === "BYTES") {
    return Tensor.fromElements(
      datatype,
      shape,
      Array.from({ length: count }, () => new Uint8Array()),
    );
  }
  return Tensor.fromBytes(datatype, shape, new Uint8Array(count * elementByteSize(datatype)));
}
