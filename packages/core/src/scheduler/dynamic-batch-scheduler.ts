import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import { EqualInputsRule, NO_PAYLOAD, Payload } from "../batch/payload.js";
import { defaultDynamicBatching } from "../config/defaults.js";
import { deadlineSetting, type ShareOptions, targetLatencyMs } from "../config/model-options.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { LateCause } from "../observe/statistics.js";
import type { InferenceRequest, ResponseGate } from "../request/inference-request.js";
import { Alarm, type Clock, type DeadlineQueue } from "../system/clock.js";
import { AdaptiveBatching } from "./adaptive-batching.js";
import { DeadlineBatching } from "./deadline-batching.js";
import { FairShares, type ShareLedger } from "./fair-shares.js";
import {
  type BatchDecision,
  type BatchingRules,
  type BatchPlanner,
  cutOfPlan,
  formBatch,
} from "./form-batch.js";
import {
  type BatcherQueue,
  type LevelStatus,
  PriorityQueue,
  type QueuedRequestView,
  type QueueTotals,
} from "./priority-queue.js";
import { ArrivalHold, isPartOfWork, type Scheduler, stoppedError } from "./scheduler.js";
import { UrgencyQueue } from "./urgency-queue.js";

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
  readonly #instances: InstanceGroup;
  readonly #clock: Clock;
  readonly #queue: BatcherQueue;
  readonly #ordered: OrderedResponses | undefined;
  /** Set for models with a target latency or deadlines, until they are stopped. */
  #planner: BatchPlanner | undefined;
  #rules: BatchingRules;
  #payload = NO_PAYLOAD;
  #payloadClosed = true;
  readonly #alarm: Alarm;
  #wakeAtRows = 0;
  #looking = false;
  #lookDeferred = false;
  /** True if there are requests that the batcher has not looked at because no slot was free. */
  #needsSlot = false;
  readonly #onChange: BatcherShare["onChange"];
  #stopped = false;
  /** True once the delay is off although the configuration has one. */
  #flushing = false;
  #hold: ArrivalHold | undefined;

  constructor(
    config: ModelConfig,
    instances: InstanceGroup,
    clock: Clock,
    deadlines: DeadlineQueue,
    holdUntil = 0,
    {
      maxBatchCost,
      padded,
      mixed,
      alone = false,
      shares,
      ledger,
      ordered,
      levels,
      onChange,
    }: BatcherShare = {},
  ) {
    const batching = config.dynamicBatching ?? defaultDynamicBatching();
    this.#instances = instances;
    this.#clock = clock;
    this.#alarm = new Alarm(clock, () => this.#look());
    this.#hold = holdUntil > 0 ? new ArrivalHold(holdUntil) : undefined;
    this.#onChange = onChange;
    const [now, look] = [() => clock.now(), () => this.#look()];
    this.#rules = {
      maxBatchSize: alone ? 1 : Math.max(1, config.maxBatchSize),
      preferredBatchSizes: [...new Set(batching.preferredBatchSize)].sort((a, b) => a - b),
      maxQueueDelayMs: batching.maxQueueDelayMicroseconds / 1000,
      equalInputs: new EqualInputsRule(config, padded, mixed),
      ...(maxBatchCost === undefined ? {} : { maxBatchCost }),
    };
    this.#ordered = batching.preserveOrdering ? (ordered ?? new OrderedResponses()) : undefined;
    const target = targetLatencyMs(config);
    const setting = deadlineSetting(config);
    if (setting === undefined && shares === undefined) {
      const queue = new PriorityQueue(batching, deadlines, now, look, levels);
      this.#queue = queue;
      if (target !== undefined) {
        const { maxBatchSize } = this.#rules;
        const rules = { targetLatencyMs: target, maxBatchSize };
        this.#planner = new AdaptiveBatching(rules, queue, instances);
      }
    } else {
      const fair = shares && new FairShares(shares, this.#rules.maxBatchSize, ledger);
      const queue = new UrgencyQueue(batching, deadlines, setting, now, look, fair);
      this.#queue = queue;
      if (fair !== undefined) fair.headOrder = () => queue.headOrder();
      this.#planner = new DeadlineBatching(queue, Math.max(1, config.maxBatchSize), instances, fair);
    }
    this.mergeAfterMs = this.#rules.maxQueueDelayMs;
    this.maxBatchSize = config.maxBatchSize;
  }

  get queuedCount(): number {
    return this.#queue.size;
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
    return this.#needsSlot && this.#queue.size > 0;
  }

  /** True if requests wait for others to join, which they do at most until an instance takes the payload. */
  get waitsBehindPayload(): boolean {
    return this.#alarm.isSet && this.#payload.state === "queued";
  }

  freePlaces(priority?: number): number {
    return this.#queue.freePlaces(priority);
  }

  enqueue(request: InferenceRequest, isMoved = false): void {
    if (this.#stopped && !isPartOfWork(request)) throw stoppedError(request);
    this.#queue.place?.(request);
    this.#planner?.admit(request, this.#clock.now());
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
    const inHurry = request.deadline !== undefined || request.queueTimeoutMicroseconds > 0;
    const mayHurry = this.#planner !== undefined && (inHurry || request.due < Number.POSITIVE_INFINITY);
    const waiting = this.#alarm.isSet && rowsDecide && !mayHurry;
    if (waiting && !this.#payloadIsOver && this.#queue.rows < this.#wakeAtRows) return;
    this.#lookDeferred = true;
    this.#clock.defer(() => {
      this.#lookDeferred = false;
      this.#look();
    });
  }

  slotFreed(): void {
    this.#look();
  }

  started(instance: ModelInstance, payload: Payload): void {
    this.#planner?.started(instance, payload, this.#clock.now());
  }

  ended(instance: ModelInstance, payload: Payload): void {
    this.#planner?.ended(instance, payload, this.#clock.now());
  }

  lateCause(request: InferenceRequest): LateCause | undefined {
    return this.#planner?.lateCause?.(request, this.#clock.now());
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
      while (outcome === "formed" && this.#queue.size > 0 && this.#hold === undefined && this.hasSlot) {
        outcome = this.#formNext();
      }
      if (outcome === "waits") return;
      this.#alarm.callOff();
      this.#needsSlot = this.#queue.size > 0 && this.#hold === undefined;
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
    for (let i = 0; i < decision.take; i++) {
      const request = next!;
      next = view.after(request);
      this.#queue.take(request);
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

/** Settings of a batcher besides its configuration, when it is one of several or knows of lengths. */
interface BatcherShare {
  readonly maxBatchCost?: number | undefined;
  /** Inputs that are padded to one shape later, so their shapes may differ between the requests of a batch. */
  readonly padded?: ReadonlySet<string> | undefined;
  /** True if requests with different optional inputs may share a batch, which the model divides by itself. */
  readonly mixed?: boolean | undefined;
  /** How callers share the model. */
  readonly shares?: ShareOptions | undefined;
  /** Accounts of callers that share all models together. @default accounts of this model */
  readonly ledger?: ShareLedger | undefined;
  /** True if each request is a batch of its own. */
  readonly alone?: boolean | undefined;
  readonly ordered?: OrderedResponses | undefined;
  /** Totals by priority level over all batchers, which the size limit of a level counts. */
  readonly levels?: Map<number, QueueTotals> | undefined;
  /** Called when `needsSlot` or `waitsBehindPayload` of the batcher may have changed. */
  readonly onChange?: (() => void) | undefined;
}

class Place implements ResponseGate {
  deliveries: (() => void)[] = [];
  done = false;
  next: Place | undefined = undefined;
  readonly #flush: () => void;

  constructor(flush: () => void) {
    this.#flush = flush;
  }

  pass(deliver: () => void, final: boolean): void {
    this.deliveries.push(deliver);
    this.done ||= final;
    this.#flush();
  }

  leave(): void {
    this.deliveries = [];
    this.done = true;
    this.#flush();
  }
}

/**
 * Holds answers back until those of all earlier requests are out (`preserveOrdering`). A request gets its place when it
 * leaves the queue. A request that is cancelled, even while its answer is held back, drops the held answer and delays
 * no other.
 */
export class OrderedResponses {
  /** The first place whose request is not done. Places are linked, so removing each takes one step. */
  #head: Place | undefined;
  #tail: Place | undefined;
  #flushing = false;
  readonly #flushAll = () => this.#flush();

  admit(request: InferenceRequest): void {
    const place = new Place(this.#flushAll);
    if (this.#tail === undefined) this.#head = place;
    else this.#tail.next = place;
    this.#tail = place;
    request.gate = place;
  }

  /**
   * Delivers answers whose turn has come. A delivery may cancel other requests, which calls this again; the running
   * loop handles those too.
   */
  #flush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    try {
      for (let place = this.#head; place !== undefined; place = this.#head) {
        const { deliveries } = place;
        place.deliveries = [];
        for (const deliver of deliveries) deliver();
        if (place.deliveries.length > 0) continue;
        if (!place.done) return;
        this.#head = place.next;
        if (this.#head === undefined) this.#tail = undefined;
      }
    } finally {
      this.#flushing = false;
    }
  }
}
