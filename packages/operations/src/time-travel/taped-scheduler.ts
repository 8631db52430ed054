import type { Executor } from "@tritonjs/core/backend";
import type { LateCause } from "@tritonjs/core/diagnostics";
import type { Clock } from "@tritonjs/core/extension";
import {
  type InferenceRequest,
  type InstanceGroup,
  type InstanceModel,
  type InstanceUser,
  type LevelStatus,
  ModelInstance,
  type Payload,
  type PlannedInstance,
  type Scheduler,
  type SequenceCounts,
  type Timer,
} from "@tritonjs/core/internal";
import type { TritonError } from "@tritonjs/protocol";
import { ENTRY } from "./tape.js";

/**
 * What writes a tape while a server works, or reads it again in a replay. The parts around a scheduler report the same
 * events to it in both cases, so that a replay can compare them one by one.
 */
export abstract class TapeHead {
  /** True while a question is answered that the tape does not record. */
  protected isQuiet = false;
  /** The time, which stands still within a step unless that takes long. */
  abstract now(): number;
  /** A number that the scheduler reads, such as the room of an instance. */
  abstract value(model: number, what: number, actual: number): number;
  /** Something outside the scheduler happens. Numbers identify it. */
  abstract step(kind: number, model: number, ...fields: readonly number[]): void;
  abstract text(value: string): number;
  /** Registers a call that the clock makes later. */
  abstract schedule(kind: number, model: number, id: number, delayMs: number, run: () => void): Timer;
  /** A request reaches the scheduler. @returns a function to call once it is queued or refused */
  abstract arrive(model: number, request: InferenceRequest, isMoved: boolean): () => void;
  /** Number of a request; -1 for one that has not arrived. */
  abstract seqOf(request: InferenceRequest): number;
  abstract started(model: number, instance: number, payload: Payload): void;
  /** Number of a batch that has started. */
  abstract batchOf(payload: Payload): number;
  /** Calls the scheduler: requests that it cancels within follow from its decisions. */
  within<T>(call: () => T): T {
    return call();
  }

  /** Lets an instance begin a batch, which may send and cancel requests before it returns. */
  starting<T>(call: () => T): T {
    return call();
  }

  /** Asks the scheduler a question that the tape does not record. */
  quietly<T>(ask: () => T): T {
    this.isQuiet = true;
    try {
      return ask();
    } finally {
      this.isQuiet = false;
    }
  }
}

/** In place of the number of a request: an instance that begins a batch has caused it. */
export const BY_INSTANCE = -2;

/** Number of values for each instance. */
const VALUES = 2;

/** Clock of a scheduler: its timers and deferred calls are steps. */
export class TapedClock implements Clock {
  /** Numbers of the last timer and the last deferred call. */
  timers = 0;
  deferred = 0;

  constructor(
    private readonly head: TapeHead,
    private readonly model: number,
  ) {}

  now(): number {
    return this.head.now();
  }

  wallNow(): number {
    return this.head.now();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    return this.#schedule(ENTRY.timer, ++this.timers, delayMs, run);
  }

  defer(run: () => void): void {
    this.#schedule(ENTRY.defer, ++this.deferred, 0, run);
  }

  #schedule(kind: number, id: number, delayMs: number, run: () => void): Timer {
    const { head, model } = this;
    return head.schedule(kind, model, id, delayMs, () => {
      head.step(kind, model, id);
      head.within(run);
    });
  }
}

/** An instance whose room is read from the tape, or written to it. */
export class TapedInstance extends ModelInstance {
  constructor(
    private readonly head: TapeHead,
    private readonly tapedModel: number,
    /** Number in the order in which the instances of the model were made. */
    readonly number: number,
    placement: PlannedInstance,
    executor: Executor,
    model: InstanceModel,
  ) {
    super(placement, executor, model);
  }

  override run(payload: Payload): Promise<void> {
    return this.head.starting(() => super.run(payload));
  }

  override get room(): number {
    const { capacity = 1, isPausing = false } = this.executor;
    const places = this.head.value(
      this.tapedModel,
      VALUES * this.number,
      this.healthy && !isPausing ? capacity : 0,
    );
    return Math.max(0, places - this.atWork.length);
  }

  override get takesAhead(): boolean {
    const { takesAhead = false } = this.executor;
    const ahead = this.head.value(this.tapedModel, VALUES * this.number + 1, Number(takesAhead));
    return this.healthy && this.busy && this.atWork.length <= ahead;
  }
}

/** Value that a reading has until it changes: an instance takes one batch, and none ahead. */
export function initialValue(what: number): number {
  return what % VALUES === 0 ? 1 : 0;
}

/** What feeds a group of instances: the scheduler, or its part for one instance. */
export class TapedUser implements InstanceUser {
  readonly opened: InstanceUser["opened"];
  readonly closed: InstanceUser["closed"];
  #known: readonly ModelInstance[];
  isLoaded = false;

  constructor(
    protected readonly head: TapeHead,
    protected readonly model: number,
    private readonly inner: InstanceUser,
    private readonly group: InstanceGroup,
    /** Number of the instance that it feeds; -1 for all. */
    private readonly part: number,
  ) {
    this.#known = group.serving;
    if (inner.opened === undefined) return;
    this.opened = (one) => new TapedUser(head, model, inner.opened!(one), one, numberOf(one.instances[0]));
    this.closed = async (one) => {
      head.step(ENTRY.closing, model, numberOf(one.instances[0]));
      await inner.closed?.(one);
    };
  }

  get mergeAfterMs(): number {
    return this.inner.mergeAfterMs ?? 0;
  }

  get maxBatchSize(): number {
    return this.inner.maxBatchSize ?? 0;
  }

  slotFreed(): void {
    this.look();
    this.head.step(ENTRY.room, this.model, this.part);
    this.head.within(() => this.inner.slotFreed?.());
  }

  healthChanged(healthy: boolean, instance: ModelInstance): void {
    this.look();
    const { head, model } = this;
    const { code = "", reason = "" } = instance.unhealthyReason ?? {};
    const why = [head.text(code), head.text(reason)];
    head.step(ENTRY.health, model, numberOf(instance), healthy ? 1 : 0, ...why);
    head.within(() => this.inner.healthChanged?.(healthy, instance));
  }

  started(instance: ModelInstance, payload: Payload): void {
    this.look();
    this.head.started(this.model, numberOf(instance), payload);
    this.inner.started?.(instance, payload);
  }

  ended(instance: ModelInstance, payload: Payload): void {
    this.look();
    this.head.step(ENTRY.ended, this.model, this.head.batchOf(payload));
    this.head.within(() => this.inner.ended?.(instance, payload));
  }

  /** Reports changes of instances now, if no step follows. */
  lookAgain(): void {
    this.look();
  }

  /** Reports instances that were loaded, have joined or have left since the last step. */
  protected look(): void {
    const { serving, instances } = this.group;
    if (!this.isLoaded && instances.length > 0 && instances.every(({ healthy }) => healthy)) {
      this.isLoaded = true;
      if (this.part < 0) this.head.step(ENTRY.loaded, this.model);
    }
    if (this.#known === serving || this.part >= 0) return;
    const before = this.#known;
    this.#known = serving;
    for (const one of serving) {
      if (before.includes(one)) continue;
      this.head.step(
        ENTRY.join,
        this.model,
        numberOf(one),
        one.placement.index,
        this.head.text(one.placement.name),
      );
    }
    for (const one of before) {
      if (!serving.includes(one)) this.head.step(ENTRY.retire, this.model, numberOf(one));
    }
  }
}

/** A scheduler that reports what reaches it. */
export class TapedScheduler extends TapedUser implements Scheduler {
  readonly whenEmpty: Scheduler["whenEmpty"];
  readonly hasSequence: Scheduler["hasSequence"];
  readonly freePlaces: Scheduler["freePlaces"];
  readonly limits: Scheduler["limits"];
  readonly #scheduler: Scheduler;

  constructor(head: TapeHead, model: number, scheduler: Scheduler, group: InstanceGroup) {
    super(head, model, scheduler, group, -1);
    this.#scheduler = scheduler;
    const { whenEmpty, hasSequence, freePlaces, limits } = scheduler;
    if (whenEmpty !== undefined) this.whenEmpty = () => whenEmpty.call(scheduler);
    if (hasSequence !== undefined) this.hasSequence = (request) => hasSequence.call(scheduler, request);
    if (freePlaces !== undefined) this.freePlaces = (priority) => freePlaces.call(scheduler, priority);
    this.limits = limits && { ...limits, lateCause: (request) => this.#lateCause(request) };
  }

  get queuedCount(): number {
    return this.#scheduler.queuedCount;
  }

  get levels(): readonly LevelStatus[] | undefined {
    return this.#scheduler.levels;
  }

  get sequences(): SequenceCounts | undefined {
    return this.#scheduler.sequences;
  }

  enqueue(request: InferenceRequest, isMoved = false): void {
    const { head, model } = this;
    this.look();
    const queued = head.arrive(model, request, isMoved);
    if (this.hasSequence !== undefined) {
      request.observe({
        released: (one, again) => head.step(ENTRY.released, model, head.seqOf(one), again ? 1 : 0),
      });
    }
    try {
      head.within(() => this.#scheduler.enqueue(request, isMoved));
    } catch (error) {
      head.step(ENTRY.refused, model, head.seqOf(request), head.text(endingOf(error)));
      throw error;
    } finally {
      queued();
    }
  }

  stop(): void {
    this.head.step(ENTRY.stop, this.model);
    this.head.within(() => this.#scheduler.stop());
  }

  failQueued(error: TritonError): void {
    this.head.step(
      ENTRY.failQueued,
      this.model,
      this.head.text(error.code),
      this.head.text(error.reason ?? ""),
    );
    this.head.within(() => this.#scheduler.failQueued(error));
  }

  #lateCause(request: InferenceRequest): LateCause | undefined {
    const { head, model } = this;
    const cause = head.quietly(() => this.#scheduler.limits?.lateCause(request));
    const seq = head.seqOf(request);
    if (seq >= 0) head.step(ENTRY.late, model, seq, head.text(cause ?? ""));
    return cause;
  }
}

/** Word for what became of a request: empty for an answer. */
export function endingOf(error: unknown): string {
  if (error === undefined) return "";
  const { reason, code } = error as Partial<TritonError>;
  return reason ?? code ?? "UNKNOWN";
}

function numberOf(instance: ModelInstance | undefined): number {
  return instance instanceof TapedInstance ? instance.number : -1;
}
