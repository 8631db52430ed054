import { elementByteSize, elementCount, Tensor, type TritonError } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/batch-tensors.js";
import { EqualInputsRule, Payload } from "../../batch/payload.js";
import type { ModelInstance } from "../../instance/model-instance.js";
import type { LateCause } from "../../observe/statistics.js";
import { InferenceRequest } from "../../request/inference-request.js";
import { NO_SEQUENCE } from "../../request-info.js";
import type { Timer } from "../../system/clock.js";
import type { BatchedModel, SlotPlanner } from "../batcher.js";
import { type SequenceHost, type Slot, SlotBatcher, type WaitingRequest } from "./sequence.js";
import type { ControlInputs } from "./slot-batchers.js";

/**
 * The direct strategy at one instance: the slot of a sequence is its row of the batch. One batch runs at a time. The
 * next batch is formed when the instance is idle again, at the end of the event loop's turn. So clients that have just
 * got their answers can join it with their next requests.
 */
export class DirectBatcher extends SlotBatcher {
  readonly #controls: ControlInputs;
  #rules: DirectRules;
  /** Set for a batcher that plans. */
  readonly #planner: SlotPlanner | undefined;
  #lookDeferred = false;
  #timer: Timer | undefined;

  /**
   * @param model its group of instances has this one instance
   * @param planner bounds the batches. @default only the slots do
   */
  constructor(model: BatchedModel, host: SequenceHost, controls: ControlInputs, planner?: SlotPlanner) {
    super(model.instances, host, model.clock);
    const { config } = model;
    this.#controls = controls;
    this.#planner = planner;
    const { maxQueueDelayMicroseconds = 0, minimumSlotUtilization = 0 } =
      config.sequenceBatching?.direct ?? {};
    this.#rules = {
      maxQueueDelayMs: maxQueueDelayMicroseconds / 1000,
      minimumSlotUtilization,
      equalInputs: new EqualInputsRule(config),
    };
  }

  started(instance: ModelInstance, payload: Payload): void {
    this.#planner?.started(instance, payload, this.clock.now());
  }

  ended(instance: ModelInstance, payload: Payload): void {
    this.#planner?.ended(instance, payload, this.clock.now());
  }

  override arrived(request: InferenceRequest): void {
    this.#planner?.arrived(request, this.clock.now());
  }

  override lateCause(request: InferenceRequest): LateCause | undefined {
    const slot = this.slots.findIndex(({ sequence }) => sequence?.correlationId === request.correlationId);
    return this.#planner?.lateCause(request, Math.max(0, slot) + 1, this.clock.now());
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
    if (!healthy) this.host.lost(this);
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
    if (this.host.held || this.instance.idleInstances === 0) return;
    const now = this.clock.now();
    const plan = this.#planner?.plan(
      this.slots.map(({ sequence }) => sequence?.head),
      now,
    );
    for (const [slot, error] of plan?.refused ?? []) refuse(this.slots[slot]!, error, this.host);
    const slots = plan === undefined ? this.slots : this.slots.slice(0, plan.most);
    const heads = slots.map((slot) => this.host.head(slot));
    const { rows, waitMs } = formDirectBatch(heads, now, this.#rules, this.slots.length, plan?.slackMs);
    if (waitMs !== undefined) this.#timer = this.clock.setTimer(waitMs, () => this.#look());
    if (rows.length > 0) this.#run(rows);
  }

  #run(rows: readonly boolean[]): void {
    const slot = this.slots[rows.indexOf(true)]!;
    const first = slot.sequence!.head!;
    const missing = rows.includes(false) ? this.#nullInputsLike(this.host.head(slot)!.inputs) : undefined;
    const payload = new Payload();
    payload.saturated = true;
    rows.forEach((runs, i) => {
      payload.add(runs ? this.host.take(this.slots[i]!) : nullRequest(first, missing!));
    });
    this.instance.enqueue(payload);
  }

  #nullInputsLike(inputs: Tensors): Tensors {
    return this.#controls.addTo(nullInputs(inputs), { ...NO_SEQUENCE, ready: false });
  }
}

/**
 * Makes a request that fills a slot. Its inputs have the shapes of a request that runs, with all zeros or empty
 * strings, and it has no caller.
 */
function nullRequest(like: InferenceRequest, inputs: Tensors): InferenceRequest {
  const request = new InferenceRequest(like.modelName, { inputs, ready: false });
  request.batchSize = like.batchSize;
  return request;
}

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

/** Rounding error allowed in sums of fractional milliseconds. */
const CLOCK_ERROR_MS = 1e-6;

export interface DirectRules {
  /** Longest wait for further requests, in milliseconds; 0 for none. */
  readonly maxQueueDelayMs: number;
  /** Share of the slots, from 0 to 1, with which a batch runs before the delay ends; 0 for any. */
  readonly minimumSlotUtilization: number;
  readonly equalInputs: EqualInputsRule;
}

interface DirectDecision {
  /** For each slot from the lowest: true if its request runs, false if a null request takes its place. */
  readonly rows: readonly boolean[];
  /** Set if the requests wait for others: milliseconds until the next look at the latest. */
  readonly waitMs?: number;
}

/**
 * The direct strategy's decision, as a pure function of the slots, the time and the rules.
 *
 * ```
 * slot      0        1        2        3
 * waiting   A1 A2    -        C1       -
 * batch     A1       null     C1              up to the highest slot with a request
 * ```
 *
 * A request that differs from the first one in an input that must agree stays in its sequence, and a null request runs
 * in its place.
 *
 * @param heads the next request of each slot that may take part
 * @param slotCount number of all slots
 * @param slackMs milliseconds that the requests may wait at most, by their deadlines
 */
export function formDirectBatch(
  heads: readonly (WaitingRequest | undefined)[],
  now: number,
  rules: DirectRules,
  slotCount = heads.length,
  slackMs = Number.POSITIVE_INFINITY,
): DirectDecision {
  const ready = heads.filter((head) => head !== undefined);
  const first = ready[0];
  if (first === undefined) return { rows: [] };
  const { maxQueueDelayMs: delay, minimumSlotUtilization: utilization } = rules;
  if (delay > 0 && utilization > 0) {
    const age = now - Math.min(...ready.map((request) => request.queueStart));
    const waitMs = Math.min(delay - age, slackMs);
    if (waitMs > CLOCK_ERROR_MS && ready.length / slotCount < utilization) return { rows: [], waitMs };
  }
  const required = rules.equalInputs.startWith(first.inputs);
  const highest = heads.findLastIndex((head) => head !== undefined);
  const rows = heads
    .slice(0, highest + 1)
    .map((head) => head !== undefined && (required === undefined || required.holdsFor(head.inputs)));
  return { rows };
}

/**
 * Refuses the next request of a sequence in a slot. The sequence goes on, unless the model now never sees its START or
 * its END.
 */
function refuse(slot: Slot, error: TritonError, host: SequenceHost): void {
  const sequence = slot.sequence!;
  const { sequenceStart, sequenceEnd } = sequence.head!;
  if (sequenceStart) sequence.head!.cancel(error);
  else host.take(slot).cancel(error);
  if (sequenceEnd) host.gaveUp(sequence);
}
