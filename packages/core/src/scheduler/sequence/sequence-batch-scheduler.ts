import { errorFor, type Tensor, type TritonError } from "@tritonjs/protocol";
import { process } from "#host";
import type { Tensors } from "../../batch/batch-tensors.js";
import { sequenceSlots } from "../../config/sequence-batching.js";
import type { InstanceGroup } from "../../instance/instance-group.js";
import type { LateCause } from "../../observe/statistics.js";
import type { InferenceRequest, RequestObserver } from "../../request/inference-request.js";
import type { EvictionListener, EvictionReason, SequenceInfo } from "../../request-info.js";
import type { Clock } from "../../system/clock.js";
import type { BatchedModel, Batcher } from "../batcher.js";
import type { QueueTotals } from "../dynamic/priority-queue.js";
import {
  ArrivalHold,
  isPartOfWork,
  type KnownLimits,
  type Scheduler,
  type SequenceCounts,
  stoppedError,
} from "../scheduler.js";
import { DirectBatcher } from "./direct-batcher.js";
import {
  Sequence,
  type SequenceHost,
  SequenceTimeouts,
  type Slot,
  type SlotBatcher,
  Slots,
  type WaitingRequest,
} from "./sequence.js";
import { ControlInputs, ImplicitStates, OldestBatcher } from "./slot-batchers.js";

export interface SequenceSchedulerOptions {
  /** Number of requests in slots before the first batch, once: a hold for tests. */
  readonly holdUntil: number;
  readonly backlogHoldUntil: number;
  /** Called when a sequence ended without its END, once no instance has a request of it. */
  readonly onEvict?: EvictionListener | undefined;
  /** Initial states of sequences, by name of the state's input. */
  readonly initialStates: ReadonlyMap<string, Tensor>;
  /** Decides about the batches. @default Triton's rules */
  readonly batcher?: Batcher | undefined;
}

/**
 * Triton's sequence batcher: requests with one correlation id go to one instance, one after the other.
 *
 * ```
 * request --by correlation id--> sequence in a slot -----------> the batcher of the slot's instance
 *                            \-> sequence in the backlog --+          |
 *                                                          |   END, idle, given up
 *                                    the oldest gets the slot <-------+
 * ```
 */
export class SequenceBatchScheduler implements Scheduler, SequenceHost {
  held: boolean;
  readonly states: ImplicitStates | undefined;
  readonly limits: KnownLimits | undefined;
  readonly #modelName: string;
  readonly #iterative: boolean;
  readonly #clock: Clock;
  readonly #timeouts: SequenceTimeouts;
  readonly #options: SequenceSchedulerOptions;
  readonly #controls: ControlInputs;
  readonly #batchers = new Map<InstanceGroup, SlotBatcher>();
  readonly #makeBatcher: (part: InstanceGroup) => SlotBatcher;
  /** Slots of each instance. */
  readonly #slotCount: number;
  #instancesSoFar = 0;
  readonly #slots = new Slots((sequence) => this.#timeouts.assigned(sequence));
  /** Sequences that accept requests, in slots and in the backlog. */
  readonly #open = new Map<bigint | string, Sequence>();
  readonly #totals: QueueTotals = { size: 0, rows: 0 };
  readonly #slotHold: ArrivalHold;
  readonly #backlogHold: ArrivalHold;
  #nextId = 1n;
  #onEmpty: (() => void) | undefined;
  #stopped = false;

  constructor(model: Omit<BatchedModel, "instances">, options: SequenceSchedulerOptions) {
    const { config, clock, deadlines } = model;
    const sequences = config.sequenceBatching!;
    this.#modelName = config.name;
    this.#iterative = sequences.iterativeSequence;
    this.#clock = clock;
    const idle = { maxIdleMs: sequences.maxSequenceIdleMicroseconds / 1000 };
    this.#timeouts = new SequenceTimeouts(idle, clock, deadlines, (sequence, reason) =>
      this.#close(sequence, reason),
    );
    this.#options = options;
    this.#controls = new ControlInputs(config);
    if (sequences.state.length > 0) this.states = new ImplicitStates(config, options.initialStates);
    this.#slotHold = new ArrivalHold(options.holdUntil);
    this.#backlogHold = new ArrivalHold(options.backlogHoldUntil);
    this.held = options.holdUntil > 0 && sequences.oldest === undefined;
    this.#slotCount = sequenceSlots(config);
    const { batcher } = options;
    const limits = batcher?.limits;
    this.limits = limits && { ...limits, lateCause: (request) => this.#lateCause(request) };
    this.#makeBatcher = (instances) => {
      const part: BatchedModel = { ...model, instances, holdUntil: options.holdUntil };
      return sequences.oldest === undefined
        ? new DirectBatcher(part, this, this.#controls, batcher?.openSlots?.(part))
        : new OldestBatcher(part, this, batcher);
    };
  }

  opened(part: InstanceGroup): SlotBatcher {
    const batcher = this.#makeBatcher(part);
    const index = this.#instancesSoFar++;
    for (let number = 0; number < this.#slotCount; number++) {
      batcher.slots.push({ batcher, number, rank: number * MOST_INSTANCES + index, sequence: undefined });
    }
    this.#batchers.set(part, batcher);
    this.#slots.open(batcher);
    return batcher;
  }

  async closed(part: InstanceGroup): Promise<void> {
    const batcher = this.#batchers.get(part)!;
    this.#slots.close(batcher);
    await batcher.whenEmpty();
    this.#batchers.delete(part);
  }

  get queuedCount(): number {
    let count = this.#totals.size;
    for (const batcher of this.#batchers.values()) count += batcher.queuedCount;
    return count;
  }

  get sequences(): SequenceCounts {
    let inSlots = 0;
    for (const { slots } of this.#batchers.values()) {
      for (const slot of slots) if (slot.sequence !== undefined) inSlots++;
    }
    return { inSlots, inBacklog: this.#slots.backlog.length };
  }

  hasSequence({ correlationId }: InferenceRequest): boolean {
    return correlationId !== undefined && this.#open.has(correlationId);
  }

  #lateCause(request: InferenceRequest): LateCause | undefined {
    const id = request.correlationId;
    const batchers = [...this.#batchers.values()];
    const own = batchers.find(({ slots }) => slots.some(({ sequence }) => sequence?.correlationId === id));
    // The sequence of a request that ended it has left its slot.
    return (own ?? batchers[0])?.lateCause(request);
  }

  async whenEmpty(): Promise<void> {
    while (!this.#isEmpty) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve;
      });
    }
  }

  get #isEmpty(): boolean {
    const { inSlots, inBacklog } = this.sequences;
    return inSlots + inBacklog === 0;
  }

  enqueue(request: InferenceRequest): void {
    if (this.#iterative && request.batchSize <= 1 && !hasCorrelationId(request)) {
      request.correlationId = this.#nextId++;
      request.sequenceStart = true;
    }
    const id = admittedId(request, this.#modelName);
    if (this.#stopped && request.sequenceStart && !isPartOfWork(request)) throw stoppedError(request);
    const known = this.#open.get(id);
    if (known === undefined && !request.sequenceStart) throw startMissingError(id, this.#modelName);
    this.#push(known ?? this.#begin(id), request);
  }

  stop(): void {
    this.#stopped = true;
    this.held = false;
    // Iterative sequences end by themselves, when their request is answered.
    const ended = this.#iterative ? [] : [...this.#open.values()];
    for (const sequence of ended) this.#close(sequence, "stopped");
    for (const batcher of this.#batchers.values()) batcher.hurry();
  }

  failQueued(error: TritonError): void {
    const batchers = [...this.#batchers.values()];
    const inSlots = batchers.flatMap((batcher) => batcher.slots.map((slot) => slot.sequence));
    for (const sequence of [...inSlots, ...this.#slots.backlog]) {
      if (sequence === undefined) continue;
      sequence.failAll(error);
      this.#close(sequence, "failed");
    }
    for (const batcher of batchers) batcher.failQueued(error);
  }

  gaveUp(sequence: Sequence): void {
    this.#close(sequence, "cancelled");
  }

  evicted(info: SequenceInfo, reason: EvictionReason): void {
    try {
      this.#options.onEvict?.(info, reason);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  head({ sequence }: Slot): WaitingRequest | undefined {
    const head = sequence?.head;
    if (head === undefined || this.states === undefined) return head;
    return this.states.withStates(head, sequence?.info);
  }

  take(slot: Slot): InferenceRequest {
    const sequence = slot.sequence!;
    const request = sequence.head!;
    const info = sequence.take(request, request.sequenceStart, slot);
    request.inputs = this.#controls.addTo(request.inputs, request);
    this.states?.attach(request, info);
    request.observe(new SequenceTurn(this, sequence, slot, info));
    this.#settle(sequence);
    return request;
  }

  released(sequence: Sequence, request: InferenceRequest, again: boolean): void {
    if (again && sequence.open) {
      request.sequenceStart = false;
      request.sequenceEnd = false;
      request.queueStart = this.#clock.now();
      this.#push(sequence, request);
      sequence.released();
      return;
    }
    if (again) request.cancel(startMissingError(sequence.correlationId, this.#modelName));
    sequence.released();
    if (this.#iterative) this.#close(sequence);
    else this.#settle(sequence);
  }

  lost(batcher: SlotBatcher): void {
    const error = errorFor(
      "SEQUENCE_LOST",
      `an instance of model '${this.#modelName}' failed, and the state of its sequences is lost: start the sequence again`,
    );
    batcher.failQueued(error);
    for (const { sequence } of batcher.slots) {
      if (!sequence?.begun) continue;
      sequence.failAll(error);
      this.#close(sequence, "failed");
    }
  }

  #begin(id: bigint | string): Sequence {
    const sequence = new Sequence(id, this, this.#totals);
    this.#open.set(id, sequence);
    this.#slots.enter(sequence);
    return sequence;
  }

  #push(sequence: Sequence, request: InferenceRequest): void {
    const now = this.#clock.now();
    sequence.lastUsed = now;
    sequence.push(request);
    if (request.sequenceEnd && !this.#iterative) this.#close(sequence);
    if (sequence.slot === undefined) this.#timeouts.limitWait(sequence, request, now);
    else sequence.slot.batcher.arrived(request);
    if (this.held) this.#held(sequence);
    else sequence.slot?.batcher.changed(sequence.slot);
  }

  /** Counts a request that arrives while the scheduler is held. */
  #held(sequence: Sequence): void {
    (sequence.slot === undefined ? this.#backlogHold : this.#slotHold).arrived();
    if (!this.#backlogHold.isOver || !this.#slotHold.isOver) return;
    this.held = false;
    for (const batcher of this.#batchers.values()) for (const slot of batcher.slots) batcher.changed(slot);
  }

  #close(sequence: Sequence, reason?: EvictionReason): void {
    if (sequence.open) this.#open.delete(sequence.correlationId);
    sequence.close(reason);
    this.#settle(sequence);
  }

  /** Frees the place of a sequence that is over. */
  #settle(sequence: Sequence): void {
    if (!sequence.over) return;
    sequence.expiry?.cancel();
    const { slot } = sequence;
    this.#slots.leave(sequence);
    if (slot !== undefined) {
      sequence.retire();
      slot.batcher.checkEmpty();
    }
    if (this.#onEmpty !== undefined && this.#isEmpty) this.#onEmpty();
  }
}

function hasCorrelationId({ correlationId: id }: InferenceRequest): boolean {
  return id !== undefined && id !== 0n && id !== "";
}

function admittedId(request: InferenceRequest, modelName: string): bigint | string {
  if (request.batchSize > 1) {
    throw errorFor(
      "INVALID_SEQUENCE",
      `inference request to model '${modelName}' must specify batch-size 1 due to requirements of sequence batcher`,
    );
  }
  if (request.correlationId === undefined || !hasCorrelationId(request)) {
    throw errorFor(
      "INVALID_SEQUENCE",
      `inference request to model '${modelName}' must specify a non-zero or non-empty correlation ID`,
    );
  }
  return request.correlationId;
}

function startMissingError(id: bigint | string, modelName: string): TritonError {
  return errorFor(
    "INVALID_SEQUENCE",
    `inference request for sequence ${id} to model '${modelName}' must specify the START flag on the first request ` +
      "of the sequence",
  );
}

/** One request between leaving its sequence and its release by the instance. */
class SequenceTurn implements RequestObserver {
  /** @param info the sequence as the model knows it during this turn */
  constructor(
    private readonly scheduler: SequenceBatchScheduler,
    private readonly sequence: Sequence,
    private readonly slot: Slot,
    private readonly info: SequenceInfo,
  ) {
    slot.batcher.left(slot);
  }

  outputs(_request: InferenceRequest, outputs: Tensors): void {
    this.scheduler.states?.keep(this.info, outputs);
  }

  released(request: InferenceRequest, again: boolean): void {
    // A request that is run again gets another turn.
    if (again) request.ignore(this);
    const { batcher } = this.slot;
    batcher.released(this.slot);
    this.scheduler.released(this.sequence, request, again);
    batcher.checkEmpty();
    batcher.goOn(this.slot);
  }
}

/** Upper bound of the instances that a model has over time: slots are assigned by number first, then by instance. */
const MOST_INSTANCES = 2 ** 32;
