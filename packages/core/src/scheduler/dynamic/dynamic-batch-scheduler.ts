import type { TritonError } from "@tritonjs/protocol";
import { defaultDynamicBatching } from "@tritonjs/protocol/config";
import { EqualInputsRule, NO_PAYLOAD, Payload } from "../../batch/payload.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { ModelInstance } from "../../instance/model-instance.js";
import type { InferenceRequest } from "../../request/inference-request.js";
import { Alarm, type Clock } from "../../system/clock.js";
import type { BatchedModel } from "../batcher.js";
import {
  ArrivalHold,
  isPartOfWork,
  type KnownLimits,
  type LevelStatus,
  type Scheduler,
  stoppedError,
} from "../scheduler.js";
import {
  type BatchDecision,
  type BatchingRules,
  type BatchPlanner,
  cutOfPlan,
  formBatch,
} from "./form-batch.js";
import { OrderedResponses } from "./ordered-responses.js";
import {
  type BatcherQueue,
  PriorityQueue,
  type QueuedRequestView,
  type QueueTotals,
} from "./priority-queue.js";

/** Payloads formed ahead for each instance, so that no instance waits for the batcher. */
const PAYLOADS_AHEAD_PER_INSTANCE = 2;

/**
 * Triton's dynamic batcher. It looks at its queue after each change that may matter:
 *
 * ```
 * a request came (once per turn of the event loop, so that those of one turn join)  --+
 * an instance took a payload, or finished one                                      ---+--> form batches
 * the delay of the oldest request ran out (one timer)                              ---+    until none forms
 * ```
 */
export class DynamicBatchScheduler implements Scheduler {
  readonly mergeAfterMs: number;
  readonly maxBatchSize: number;
  readonly limits: KnownLimits | undefined;
  readonly #instances: InstanceGroup;
  readonly #clock: Clock;
  readonly #queue: BatcherQueue;
  readonly #ordered: OrderedResponses | undefined;
  readonly #classify: BatchedModel["classify"];
  /** Set for a batcher that plans, until it is stopped. */
  #planner: BatchPlanner | undefined;
  #rules: BatchingRules;
  #payload = NO_PAYLOAD;
  #payloadClosed = true;
  readonly #alarm: Alarm;
  #wakeAtRows = 0;
  #looking = false;
  #lookDeferred = false;
  readonly #lookSoon = () => {
    this.#lookDeferred = false;
    this.#look();
  };
  /** True if there are requests that the batcher has not looked at because no slot was free. */
  #needsSlot = false;
  readonly #onChange: BatcherGroup["onChange"];
  #stopped = false;
  /** True once the delay is off although the configuration has one. */
  #flushing = false;
  #hold: ArrivalHold | undefined;

  /**
   * @param planner makes what plans the batches, of Triton's queue and a function that looks at the queue again.
   * @default Triton's rules alone
   * @param group set if it is one of several batchers of the model
   */
  constructor(
    model: BatchedModel,
    planner?: (queue: PriorityQueue, look: () => void) => BatchPlanner,
    { levels, ordered, onChange }: BatcherGroup = {},
  ) {
    const { config, instances, clock, deadlines, holdUntil = 0, maxBatchCost, padded, mixedInputs } = model;
    const batching = config.dynamicBatching ?? defaultDynamicBatching();
    this.#instances = instances;
    this.#clock = clock;
    this.#alarm = new Alarm(clock, () => this.#look());
    this.#hold = holdUntil > 0 ? new ArrivalHold(holdUntil) : undefined;
    this.#onChange = onChange;
    this.#classify = model.classify;
    const [now, look] = [() => clock.now(), () => this.#look()];
    this.#rules = {
      maxBatchSize: Math.max(1, config.maxBatchSize),
      preferredBatchSizes: [...new Set(batching.preferredBatchSize)].sort((a, b) => a - b),
      maxQueueDelayMs: batching.maxQueueDelayMicroseconds / 1000,
      equalInputs: new EqualInputsRule(config, padded, mixedInputs),
      ...(maxBatchCost === undefined ? {} : { maxBatchCost }),
    };
    this.#ordered = batching.preserveOrdering ? (ordered ?? new OrderedResponses()) : undefined;
    const queue = new PriorityQueue(batching, deadlines, now, look, levels);
    this.#planner = planner?.(queue, look);
    this.#queue = this.#planner?.queue ?? queue;
    this.limits = this.#planner?.limits;
    this.mergeAfterMs = this.#rules.maxQueueDelayMs;
    this.maxBatchSize = config.maxBatchSize;
  }

  get queuedCount(): number {
    return this.#queue.totals.size;
  }

  get levels(): readonly LevelStatus[] {
    return this.#queue.levels;
  }

  /** The next request; undefined if none waits. */
  get head(): InferenceRequest | undefined {
    return this.#queue.head;
  }

  get headPriority(): number {
    return this.#queue.headPriority;
  }

  get needsSlot(): boolean {
    return this.#needsSlot && this.#queue.totals.size > 0;
  }

  /** True if requests wait for others to join, which they do at most until an instance takes the payload. */
  get waitsBehindPayload(): boolean {
    return this.#alarm.isSet && this.#payload.state === "queued";
  }

  freePlaces(priority?: number): number {
    return this.#queue.hasLimits ? this.#queue.freePlaces(priority) : Number.POSITIVE_INFINITY;
  }

  enqueue(request: InferenceRequest, isMoved = false): void {
    if (this.#stopped && !isPartOfWork(request)) throw stoppedError(request);
    this.#classify?.(request);
    if (this.#planner !== undefined) {
      this.#queue.place?.(request);
      this.#planner.admit?.(request, this.#clock.now());
    }
    this.#queue.push(request, isMoved);
    if (this.#hold !== undefined) this.#countArrival(this.#hold);
    if (this.#lookDeferred) return;
    if (!this.hasSlot) {
      this.#needsSlot = true;
      this.#onChange?.();
      return;
    }
    // While the queue waits for more rows, a request below that number cannot change the decision.
    const rowsDecide = !this.#rules.equalInputs.comparesShapes && this.#rules.maxBatchCost === undefined;
    const mayHurry = this.#planner !== undefined && this.#planner.mayHurry?.(request) !== false;
    const waiting = this.#alarm.isSet && rowsDecide && !mayHurry;
    if (waiting && !this.#payloadIsOver && this.#queue.totals.rows < this.#wakeAtRows) return;
    this.#lookDeferred = true;
    this.#clock.defer(this.#lookSoon);
  }

  slotFreed(): void {
    this.#look();
  }

  started(instance: ModelInstance, payload: Payload): void {
    this.#planner?.started?.(instance, payload, this.#clock.now());
  }

  ended(instance: ModelInstance, payload: Payload): void {
    this.#planner?.ended?.(instance, payload, this.#clock.now());
  }

  stop(): void {
    this.#stopped = true;
    this.hurry();
  }

  #countArrival(hold: ArrivalHold): void {
    hold.arrived();
    if (hold.isOver) this.#hold = undefined;
  }

  release(): void {
    this.#hold = undefined;
    this.#look();
  }

  /** Ends all waiting for further requests, because no more will arrive. */
  hurry(): void {
    this.#hold = undefined;
    this.#flushing ||= this.#rules.maxQueueDelayMs > 0 || this.#planner !== undefined;
    this.#planner = undefined;
    this.#rules = { ...this.#rules, maxQueueDelayMs: 0 };
    this.#look();
  }

  failQueued(error: TritonError): void {
    for (let head = this.#queue.head; head !== undefined; head = this.#queue.head) head.cancel(error);
    this.#instances.failQueued(error);
  }

  get hasSlot(): boolean {
    if (this.#planner !== undefined || !this.#queue.allowsPrefetch)
      return this.#instances.idleInstances > this.#instances.queuedPayloads;
    return this.#instances.queuedPayloads < PAYLOADS_AHEAD_PER_INSTANCE * this.#instances.instances.length;
  }

  get #payloadIsOver(): boolean {
    return this.#payloadClosed || this.#payload.state === "taken";
  }

  /** Forms batches until the queue is empty, the next batch has to wait, or enough payloads are formed ahead. */
  #look(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#needsSlot = false;
    try {
      let outcome: FormOutcome = "formed";
      while (
        outcome === "formed" &&
        this.#queue.totals.size > 0 &&
        this.#hold === undefined &&
        this.hasSlot
      ) {
        outcome = this.#formNext();
      }
      if (outcome === "waits") return;
      this.#alarm.callOff();
      this.#needsSlot = this.#queue.totals.size > 0 && this.#hold === undefined;
    } finally {
      this.#looking = false;
      // An idle model must not keep its last batch in memory.
      if (this.#payload.state === "taken") this.#payload = NO_PAYLOAD;
      this.#onChange?.();
    }
  }

  #formNext(): FormOutcome {
    if (this.#payloadIsOver) this.#openPayload();
    const now = this.#clock.now();
    let view: QueuedRequestView = this.#queue;
    let rules = this.#rules;
    if (this.#planner !== undefined) {
      const plan = this.#planner.plan(rules, now);
      if (plan === undefined) return "nothing";
      ({ view, rules } = plan);
    }
    const decision = formBatch(view, this.#payload, now, rules);
    this.#apply(decision, view, rules);
    if (decision.waitMs === undefined) return "formed";
    this.#alarm.set(decision.waitMs);
    return "waits";
  }

  #openPayload(): void {
    this.#payload = new Payload();
    this.#payload.cut = "INSTANCE";
    this.#payload.maxCost = this.#rules.maxBatchCost ?? Number.POSITIVE_INFINITY;
    this.#payloadClosed = false;
    this.#wakeAtRows = 0;
  }

  #apply(decision: BatchDecision, view: QueuedRequestView, rules: BatchingRules): void {
    const payload = this.#payload;
    this.#payloadClosed ||= decision.closePayload;
    payload.complete ||= decision.closePayload;
    this.#wakeAtRows = decision.wakeAtRows;
    payload.saturated ||= decision.saturatePayload;
    if (decision.cut !== undefined) payload.cut = decision.cut;
    else if (this.#flushing && decision.take > 0) payload.cut = "FLUSH";
    if (decision.take === 0) {
      if (payload.complete) this.#instances.dispatch();
      return;
    }
    payload.requiredEqual = decision.requiredEqual;
    let next = view.head;
    for (let left = decision.take; left > 0; left--) {
      const request = next!;
      if (left > 1) next = view.after(request);
      if (this.#queue.take === undefined) request.holder!.remove(request);
      else this.#queue.take(request);
      this.#ordered?.admit(request);
      payload.add(request);
    }
    if (rules !== this.#rules) payload.cut = cutOfPlan(payload, this.#rules);
    if (payload.state === "forming") this.#instances.enqueue(payload);
    else if (payload.complete) this.#instances.dispatch();
  }
}

/** Whether requests joined a payload, wait for others to join them, or are none. */
type FormOutcome = "formed" | "waits" | "nothing";

/** What the batchers of one model have in common. */
interface BatcherGroup {
  readonly ordered?: OrderedResponses | undefined;
  /** Totals by priority level over all batchers, which the size limit of a level counts. */
  readonly levels?: Map<number, QueueTotals> | undefined;
  /** Called when `needsSlot` or `waitsBehindPayload` of the batcher may have changed. */
  readonly onChange?: (() => void) | undefined;
}
