import {
  elementByteSize,
  elementCount,
  type ModelConfig,
  Tensor,
  type TritonError,
} from "@tritonjs/protocol";
import type { Tensors } from "../batch/batch-tensors.js";
import { EqualInputsRule, Payload } from "../batch/payload.js";
import { defaultDynamicBatching } from "../config/defaults.js";
import { type DefaultLimits, deadlineSetting } from "../config/model-options.js";
import { sequenceSlots } from "../config/sequence-batching.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { LateCause } from "../observe/statistics.js";
import { InferenceRequest } from "../request/inference-request.js";
import { NO_SEQUENCE } from "../request-info.js";
import type { Clock, Timer } from "../system/clock.js";
import { hopelessError, PATIENCE_MS, STALE_MS } from "./deadline-batching.js";
import { LateCauses } from "./late-causes.js";
import { LearnedTimes } from "./learned-times.js";
import { type SequenceHost, type Slot, SlotBatcher, type WaitingRequest } from "./sequence.js";
import type { ControlInputs } from "./slot-batchers.js";
import { dueOf } from "./urgency-queue.js";

/**
 * The direct strategy at one instance: the slot of a sequence is its row of the batch. One batch runs at a time. The
 * next batch is formed when the instance is idle again, at the end of the event loop's turn. So clients that have just
 * got their answers can join it with their next requests.
 */
export class DirectBatcher extends SlotBatcher {
  readonly #controls: ControlInputs;
  #rules: DirectRules;
  /** Set for a model with deadlines. */
  readonly #deadlines: DirectDeadlines | undefined;
  #lookDeferred = false;
  #timer: Timer | undefined;

  /** @param instance the group of this one instance */
  constructor(
    config: ModelConfig,
    instance: InstanceGroup,
    host: SequenceHost,
    controls: ControlInputs,
    clock: Clock,
  ) {
    super(instance, host, clock);
    this.#controls = controls;
    const { maxQueueDelayMicroseconds = 0, minimumSlotUtilization = 0 } =
      config.sequenceBatching?.direct ?? {};
    this.#rules = {
      maxQueueDelayMs: maxQueueDelayMicroseconds / 1000,
      minimumSlotUtilization,
      equalInputs: new EqualInputsRule(config),
    };
    const setting = deadlineSetting(config);
    if (setting !== undefined) {
      const times = new LearnedTimes(instance, sequenceSlots(config));
      this.#deadlines = new DirectDeadlines(times, setting);
    }
  }

  started(instance: ModelInstance, payload: Payload): void {
    this.#deadlines?.started(instance, payload, this.clock.now());
  }

  ended(instance: ModelInstance, payload: Payload): void {
    this.#deadlines?.ended(instance, payload, this.clock.now());
  }

  override arrived(request: InferenceRequest): void {
    this.#deadlines?.arrived(request, this.clock.now());
  }

  override lateCause(request: InferenceRequest): LateCause | undefined {
    const slot = this.slots.findIndex(({ sequence }) => sequence?.correlationId === request.correlationId);
    return this.#deadlines?.lateCause(request, Math.max(0, slot) + 1, this.clock.now());
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
    const limits = this.#deadlines?.look(this.slots, now);
    for (const [slot, error] of limits?.hopeless ?? []) refuse(slot, error, this.host);
    const slots = limits === undefined ? this.slots : this.slots.slice(0, limits.most);
    const heads = slots.map((slot) => this.host.head(slot));
    const { rows, waitMs } = formDirectBatch(heads, now, this.#rules, this.slots.length, limits?.slackMs);
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

/** Bounds that deadlines set on the next batch of the direct strategy. */
interface DirectLimits {
  /** Requests that cannot be in time even in the smallest batch with their slot, each with the error for it. */
  readonly hopeless: readonly (readonly [Slot, TritonError])[];
  /** Slots that may take part, from the lowest: more would make the tightest request late. */
  readonly most: number;
  /** Milliseconds that the batch may wait for further requests. */
  readonly slackMs: number;
}

/**
 * Deadlines of ready requests in the direct strategy. A batch has a row for each slot up to the highest that takes part,
 * so a tight request in a low slot may leave the slots above it to the next batch.
 */
class DirectDeadlines {
  readonly #causes: LateCauses;

  constructor(
    private readonly times: LearnedTimes,
    private readonly limits: DefaultLimits,
  ) {
    this.#causes = new LateCauses(times, NOTHING_BEFORE);
  }

  arrived(request: InferenceRequest, now: number): void {
    request.due = dueOf(request, BY_DEFAULT, this.limits);
    this.#causes.arrived(request, now);
  }

  started(instance: ModelInstance, payload: Payload, now: number): void {
    this.#causes.started(payload, now);
    this.times.started(instance, payload, now);
  }

  ended(instance: ModelInstance, payload: Payload, now: number): void {
    this.#causes.ended(payload, now);
    this.times.ended(instance, payload, now);
  }

  /** @param leastRows rows up to the slot of the request */
  lateCause(request: InferenceRequest, leastRows: number, now: number): LateCause | undefined {
    return this.#causes.causeOf(request, now, leastRows);
  }

  look(slots: readonly Slot[], now: number): DirectLimits {
    const { lastEnd } = this.times;
    // What was learnt long ago may be wrong by now.
    const times = now - lastEnd > STALE_MS ? undefined : this.times.next;
    const hopeless: (readonly [Slot, TritonError])[] = [];
    let most = slots.length;
    let [tightest, tightestSlot, needed] = [Number.POSITIVE_INFINITY, 0, 0];
    for (const [i, slot] of slots.entries()) {
      const head = slot.sequence?.head;
      if (head === undefined) continue;
      head.due = dueOf(head, BY_DEFAULT, this.limits);
      // A slot that was left out, or whose request may wait for ever, takes part once it has waited for long.
      if (now - head.queueStart > PATIENCE_MS) needed = i + 1;
      if (times === undefined || head.due === Number.POSITIVE_INFINITY) continue;
      const ms = times.expectedMs(i + 1);
      if (now + ms > head.due) hopeless.push([slot, hopelessError(head, head.due - now, ms)]);
      else if (head.due < tightest) [tightest, tightestSlot] = [head.due, i];
    }
    if (times === undefined || tightest === Number.POSITIVE_INFINITY) {
      return { hopeless, most, slackMs: tightest };
    }
    most = Math.max(needed, tightestSlot + 1, Math.min(most, times.largestWithin(tightest - now)));
    return { hopeless, most, slackMs: tightest - now - times.plannedMs(most) };
  }
}

const BY_DEFAULT = defaultDynamicBatching();

/** No request overtakes the next one of a slot. */
const NOTHING_BEFORE = {
  classLevelOf: ({ priority }: InferenceRequest) => priority,
  countBefore: () => 0,
  dated: (): never => {
    throw new RangeError("expected no request before another, got an index");
  },
};

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
