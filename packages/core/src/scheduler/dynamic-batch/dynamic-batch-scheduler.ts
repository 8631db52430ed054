import { Payload } from "../../batch/payload.js";
import { EqualInputsRule } from "../../batch/required-equal-inputs.js";
import type { Clock, Timer } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import type { ModelConfig, ModelDynamicBatching } from "../../config/model-config.js";
import type { TritonError } from "../../errors/triton-error.js";
import type { InstanceGroup, InstanceGroupListener } from "../../instance/instance-group.js";
import type { InferenceRequest } from "../../request/inference-request.js";
import { PriorityQueue } from "../priority-queue.js";
import type { Scheduler } from "../scheduler.js";
import { isPartOfWork, stoppedError } from "../stopped-error.js";
import { type BatchDecision, type BatchingRules, formBatch } from "./form-batch.js";
import { OrderedResponses } from "./ordered-responses.js";

/** Payloads formed ahead for each instance, so that none waits for the batcher. */
const PAYLOADS_AHEAD_PER_INSTANCE = 2;

/**
 * Triton's dynamic batcher. It looks at its queue when something changed that may matter:
 *
 * ```
 * a request came (once per turn of the event loop, so that those of one turn join)  --+
 * an instance took a payload, or finished one                                      ---+--> form batches
 * the delay of the oldest request ran out (one timer)                              ---+    until none forms
 * ```
 */
export class DynamicBatchScheduler implements Scheduler, InstanceGroupListener {
  readonly #instances: InstanceGroup;
  readonly #clock: Clock;
  readonly #queue: PriorityQueue;
  readonly #ordered: OrderedResponses | undefined;
  #rules: BatchingRules;
  #payload = new Payload();
  #payloadClosed = false;
  #timer: Timer | undefined;
  #timerAt = 0;
  #wakeAtRows = 0;
  #looking = false;
  #lookDeferred = false;
  #stopped = false;
  /** Requests to wait for before the first batch, once: a hold for tests. */
  #holdUntil: number;

  constructor(
    config: ModelConfig,
    instances: InstanceGroup,
    clock: Clock,
    deadlines: DeadlineQueue,
    holdUntil = 0,
  ) {
    const batching: ModelDynamicBatching = config.dynamicBatching!;
    this.#instances = instances;
    this.#clock = clock;
    this.#holdUntil = holdUntil;
    this.#queue = new PriorityQueue(
      batching,
      deadlines,
      () => clock.now(),
      () => this.#look(),
    );
    this.#rules = {
      maxBatchSize: Math.max(1, config.maxBatchSize),
      preferredBatchSizes: [...new Set(batching.preferredBatchSize)].sort((a, b) => a - b),
      maxQueueDelayMs: batching.maxQueueDelayMicroseconds / 1000,
      equalInputs: new EqualInputsRule(config),
    };
    this.#ordered = batching.preserveOrdering ? new OrderedResponses() : undefined;
    instances.mergeAfterMs = this.#rules.maxQueueDelayMs;
    instances.maxBatchSize = config.maxBatchSize;
    instances.listener = this;
  }

  get queuedCount(): number {
    return this.#queue.size;
  }

  enqueue(request: InferenceRequest): void {
    if (this.#stopped && !isPartOfWork(request)) throw stoppedError(request);
    this.#queue.push(request);
    if (this.#lookDeferred || !this.#slotAvailable) return;
    // While the queue waits for more rows, a request below that number cannot change the decision.
    const waiting = this.#timer !== undefined && !this.#rules.equalInputs.comparesShapes;
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

  stop(): void {
    this.#stopped = true;
    this.hurry();
  }

  /** Nobody else will come: nothing waits for others any more. */
  hurry(): void {
    this.#holdUntil = 0;
    this.#rules = { ...this.#rules, maxQueueDelayMs: 0 };
    this.#look();
  }

  failQueued(error: TritonError): void {
    for (let head = this.#queue.head; head !== undefined; head = this.#queue.head) head.cancel(error);
    this.#instances.failQueued(error);
  }

  get #slotAvailable(): boolean {
    if (!this.#queue.allowsPrefetch) return this.#instances.idleInstances > this.#instances.queuedPayloads;
    return this.#instances.queuedPayloads < PAYLOADS_AHEAD_PER_INSTANCE * this.#instances.instances.length;
  }

  get #payloadIsOver(): boolean {
    return this.#payloadClosed || this.#payload.state === "taken";
  }

  /** Forms batches until the queue is empty, must wait, or the instances have enough ahead. */
  #look(): void {
    if (this.#looking) return;
    this.#looking = true;
    try {
      while (this.#queue.size > 0 && this.#queue.size >= this.#holdUntil && this.#slotAvailable) {
        this.#holdUntil = 0;
        if (this.#payloadIsOver) this.#openPayload();
        const decision = formBatch(this.#queue, this.#payload, this.#clock.now(), this.#rules);
        this.#apply(decision);
        if (decision.waitMs !== undefined) {
          this.#arm(decision.waitMs);
          return;
        }
      }
      this.#disarm();
    } finally {
      this.#looking = false;
    }
  }

  #openPayload(): void {
    this.#payload = new Payload();
    this.#payloadClosed = false;
    this.#wakeAtRows = 0;
  }

  #apply(decision: BatchDecision): void {
    const payload = this.#payload;
    this.#payloadClosed ||= decision.closePayload;
    this.#wakeAtRows = decision.wakeAtRows;
    payload.saturated ||= decision.saturatePayload;
    if (decision.take === 0) return;
    payload.requiredEqual = decision.requiredEqual;
    for (let i = 0; i < decision.take; i++) {
      const request = this.#queue.head!;
      this.#queue.take(request);
      this.#ordered?.admit(request);
      payload.add(request);
    }
    if (payload.state === "forming") this.#instances.enqueue(payload);
  }

  #arm(waitMs: number): void {
    const at = this.#clock.now() + waitMs;
    if (this.#timer !== undefined && Math.abs(at - this.#timerAt) < 0.001) return;
    this.#disarm();
    this.#timerAt = at;
    this.#timer = this.#clock.setTimer(waitMs, () => {
      this.#timer = undefined;
      this.#look();
    });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
