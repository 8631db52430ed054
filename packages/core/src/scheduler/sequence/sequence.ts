import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { InstanceGroup, InstanceUser } from "../../instance/instance-group.js";
import type { LateCause } from "../../observe/statistics.js";
import type { InferenceRequest, RequestHolder } from "../../request/inference-request.js";
import type { EvictionReason, SequenceInfo } from "../../request-info.js";
import type { Clock, Deadline, DeadlineQueue } from "../../system/clock.js";
import { Heap, type QueueTotals, RequestQueue } from "../dynamic/priority-queue.js";

export interface Slot {
  readonly batcher: SlotBatcher;
  /** Position among the slots of the instance; in the direct strategy the row of the batch. */
  readonly number: number;
  /** Order in which free slots are assigned, lowest first: by number, then by instance. */
  readonly rank: number;
  sequence: Sequence | undefined;
}

export type WaitingRequest = Pick<InferenceRequest, "queueStart" | "inputs">;

export interface SequenceHost {
  /** True during a hold for tests: nothing may run. */
  readonly held: boolean;
  head(slot: Slot): WaitingRequest | undefined;
  /** Takes the first request of a slot's sequence for the instance, with its controls and states. */
  take(slot: Slot): InferenceRequest;
  lost(batcher: SlotBatcher): void;
  /** A waiting request and those behind it were cancelled: the sequence accepts no more. */
  gaveUp(sequence: Sequence): void;
  /** The model has seen the last request of a sequence that had no END. */
  evicted(info: SequenceInfo, reason: EvictionReason): void;
}

/** Makes batches of the requests in the slots of one instance, which it feeds. */
export abstract class SlotBatcher implements InstanceUser {
  readonly slots: Slot[] = [];
  /** Requests that have left their sequence and are not done. */
  #atWork = 0;
  #onEmpty: (() => void) | undefined;

  /** @param instance the group of this one instance */
  constructor(
    protected readonly instance: InstanceGroup,
    protected readonly host: SequenceHost,
    protected readonly clock: Clock,
  ) {}

  /** False while the instance is down. */
  get healthy(): boolean {
    return this.instance.instances[0]!.healthy;
  }

  /** Resolves when no sequence and no request is left. The slots must get no new sequences any more. */
  whenEmpty(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.checkEmpty();
    });
  }

  /** Looks whether a batcher that is to be removed is empty, after a sequence or a request has left. */
  checkEmpty(): void {
    if (this.#onEmpty === undefined || this.#atWork > 0) return;
    if (this.slots.every((slot) => slot.sequence === undefined)) this.#onEmpty();
  }

  left(_slot: Slot): void {
    this.#atWork++;
  }

  released(_slot: Slot): void {
    this.#atWork--;
  }

  /** A request has arrived for the sequence in a slot. */
  arrived(_request: InferenceRequest): void {}

  /** Why a request with a deadline is late, or refused because it would be; undefined if the batcher does not look. */
  lateCause(_request: InferenceRequest): LateCause | undefined {
    return undefined;
  }

  /** Continues with the next request of a slot, after the scheduler has handled the release. */
  goOn(_slot: Slot): void {}

  abstract slotFreed(): void;
  abstract healthChanged(healthy: boolean): void;
  /** Requests that have left their sequence, and that no instance has taken. */
  abstract get queuedCount(): number;
  abstract changed(slot: Slot): void;
  /** Ends all waiting for further requests, because no more will arrive. */
  abstract hurry(): void;
  abstract failQueued(error: TritonError): void;
}

/**
 * The waiting requests of one correlation id, in a slot or in the backlog.
 *
 * ```
 * START --> [request, request, ...] --take--> instance --released-->
 *   open: takes requests | closed: END came, idle, given up | over: closed, and nothing waits: the slot is free
 * ```
 */
export class Sequence implements RequestHolder {
  /** False once no more requests can join it. */
  open = true;
  slot: Slot | undefined;
  /** Arrival of its last request, on the model's clock in milliseconds. */
  lastUsed = 0;
  /** Checks whether the sequence has been idle for too long. */
  idleDeadline: Deadline | undefined;
  /** Time at which its wait in the backlog is over. */
  expiresAt = Number.POSITIVE_INFINITY;
  expiry: Deadline | undefined;
  readonly #host: SequenceHost;
  readonly #waiting: RequestQueue;
  /** Set once the model has seen a request of the sequence. */
  info: SequenceInfo | undefined;
  #running = 0;
  #failing = false;
  #retired: EvictionReason | undefined;
  #closedBy: EvictionReason | undefined;

  constructor(
    readonly correlationId: bigint | string,
    host: SequenceHost,
    totals: QueueTotals,
  ) {
    this.#host = host;
    this.#waiting = new RequestQueue(totals);
  }

  get head(): InferenceRequest | undefined {
    return this.#waiting.head;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get running(): boolean {
    return this.#running > 0;
  }

  get begun(): boolean {
    return this.info !== undefined;
  }

  get over(): boolean {
    return !this.open && this.#waiting.size === 0;
  }

  push(request: InferenceRequest): void {
    this.#waiting.push(request);
    request.holder = this;
  }

  /**
   * Removes a waiting request that was cancelled. Later requests depend on it, so they are cancelled too. In the
   * backlog the whole sequence ends, as in Triton.
   */
  remove(request: InferenceRequest): void {
    if (this.#failing) {
      this.#waiting.remove(request);
      return;
    }
    const first = this.slot === undefined ? this.#waiting.head : request;
    const others = from(first).filter((other) => other !== request);
    this.#waiting.remove(request);
    this.#fail(others, endedEarlyError());
    this.#host.gaveUp(this);
  }

  failAll(error: TritonError): void {
    this.#fail(this.#waiting.all(), error);
  }

  #fail(requests: readonly InferenceRequest[], error: TritonError): void {
    this.#failing = true;
    for (const request of requests) request.cancel(error);
    this.#failing = false;
  }

  /** Accepts no more requests. A reason is given if the model will not see an END. */
  close(reason?: EvictionReason): void {
    this.open = false;
    this.#closedBy ??= reason;
    this.idleDeadline?.cancel();
  }

  /**
   * Takes the first request for an instance.
   *
   * @param starts true for a START, which begins a new sequence even if the old one is not over
   */
  take(request: InferenceRequest, starts: boolean, slot: Slot): SequenceInfo {
    this.#waiting.remove(request);
    if (starts && this.info !== undefined) this.#host.evicted(this.info, "restarted");
    if (starts || this.info === undefined) {
      this.info = { correlationId: this.correlationId, slot: slot.number };
    }
    request.sequence = this.info;
    this.#running++;
    return this.info;
  }

  released(): void {
    this.#running--;
    this.#evictIfOver();
  }

  /**
   * Records that the sequence has lost its slot. Once the model has seen its last request, the state kept for it can be
   * evicted.
   */
  retire(): void {
    this.#retired = this.#closedBy;
    this.#evictIfOver();
  }

  #evictIfOver(): void {
    if (this.#retired === undefined || this.#running > 0 || this.info === undefined) return;
    this.#host.evicted(this.info, this.#retired);
    this.info = undefined;
  }
}

/** Error of requests whose sequence has ended because an earlier request of it was cancelled. */
export function endedEarlyError(): TritonError {
  return errorFor(
    "SEQUENCE_CANCELLED",
    "another request of the same sequence was cancelled, which ended the sequence",
  );
}

function from(first: InferenceRequest | undefined): InferenceRequest[] {
  const all: InferenceRequest[] = [];
  for (let one = first; one !== undefined; one = one.next) all.push(one);
  return all;
}

/**
 * Assigns slots to sequences, and keeps the backlog. A new sequence gets the lowest free slot, of a healthy instance if
 * possible, or joins the backlog. A slot that becomes free goes to the sequence that has waited longest. Slots are
 * added and removed with their instances.
 */
export class Slots {
  readonly #free = new Heap<Slot>((a, b) => a.rank - b.rank);
  /** Free slots at instances that were down at the last look. */
  #aside: Slot[] = [];
  readonly #closed = new WeakSet<SlotBatcher>();
  readonly #backlog = new Set<Sequence>();
  readonly #onAssigned: (sequence: Sequence) => void;

  /** @param onAssigned called when a sequence has been assigned a slot */
  constructor(onAssigned: (sequence: Sequence) => void) {
    this.#onAssigned = onAssigned;
  }

  /** Adds the slots of a new instance, and assigns them to sequences in the backlog. */
  open({ slots }: SlotBatcher): void {
    for (const slot of slots) this.#give(slot);
  }

  /** Stops assigning the slots of an instance. Sequences in its slots stay there. */
  close(batcher: SlotBatcher): void {
    this.#closed.add(batcher);
  }

  /** Sequences without a slot, in order of arrival. */
  get backlog(): readonly Sequence[] {
    return [...this.#backlog];
  }

  enter(sequence: Sequence): void {
    const slot = this.#takeFree();
    if (slot === undefined) this.#backlog.add(sequence);
    else this.#assign(slot, sequence);
  }

  leave(sequence: Sequence): void {
    this.#backlog.delete(sequence);
    const { slot } = sequence;
    if (slot === undefined) return;
    sequence.slot = undefined;
    slot.sequence = undefined;
    this.#give(slot);
  }

  #give(slot: Slot): void {
    if (this.#closed.has(slot.batcher)) return;
    const next = this.#backlog.values().next().value;
    if (next === undefined) {
      this.#free.add(slot);
      return;
    }
    this.#backlog.delete(next);
    this.#assign(slot, next);
    slot.batcher.changed(slot);
  }

  #takeFree(): Slot | undefined {
    for (const slot of this.#aside) this.#free.add(slot);
    this.#aside = [];
    for (let slot = this.#free.take(); slot !== undefined; slot = this.#free.take()) {
      if (this.#closed.has(slot.batcher)) continue;
      if (slot.batcher.healthy) return slot;
      this.#aside.push(slot);
    }
    return this.#aside.shift();
  }

  #assign(slot: Slot, sequence: Sequence): void {
    slot.sequence = sequence;
    sequence.slot = slot;
    this.#onAssigned(sequence);
  }
}

/** Lateness of a deadline from which on the process must have stood still: its machine or its event loop was blocked. */
const STOOD_STILL_MS = 100;

/** Time to read the requests that came while the process stood still, before a sequence counts as idle. */
const CATCH_UP_MS = 500;

interface SequenceLimits {
  /** Longest time in a slot without a request, in milliseconds. */
  readonly maxIdleMs: number;
}

/** Enforces the time limits of sequences: in a slot without a request, and in the backlog with one. */
export class SequenceTimeouts {
  /** @param over called for a sequence whose time is over, after its waiting requests have failed */
  constructor(
    private readonly limits: SequenceLimits,
    private readonly clock: Clock,
    private readonly deadlines: DeadlineQueue,
    private readonly over: (sequence: Sequence, reason: "idle" | "cancelled") => void,
  ) {}

  /** Limits the wait of a request in the backlog. When its time is over, the whole sequence ends. */
  limitWait(sequence: Sequence, { queueTimeoutMicroseconds }: InferenceRequest, now: number): void {
    const at = now + queueTimeoutMicroseconds / 1000;
    if (queueTimeoutMicroseconds === 0 || at >= sequence.expiresAt) return;
    sequence.expiry?.cancel();
    sequence.expiresAt = at;
    sequence.expiry = this.deadlines.add(at, () => {
      sequence.failAll(
        errorFor("SEQUENCE_EXPIRED", "timeout of the corresponding sequence has been expired"),
      );
      this.over(sequence, "cancelled");
    });
  }

  assigned(sequence: Sequence): void {
    sequence.expiry?.cancel();
    sequence.lastUsed = this.clock.now();
    this.#watchIdle(sequence);
  }

  /**
   * Keeps one deadline for each open sequence in a slot. It is moved when it passes, not with each request.
   *
   * @param catchesUpAt end of the time to read waiting requests, after a deadline that came late
   */
  #watchIdle(sequence: Sequence, catchesUpAt?: number): void {
    if (!sequence.open) return;
    const { maxIdleMs } = this.limits;
    const at = catchesUpAt ?? sequence.lastUsed + maxIdleMs;
    sequence.idleDeadline = this.deadlines.add(at, () => {
      const now = this.clock.now();
      if (now - sequence.lastUsed < maxIdleMs) this.#watchIdle(sequence);
      else if (catchesUpAt === undefined && now - at > STOOD_STILL_MS)
        this.#watchIdle(sequence, now + CATCH_UP_MS);
      else this.over(sequence, "idle");
    });
  }
}
