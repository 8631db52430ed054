import { TritonError } from "@tritonjs/protocol";
import type { Deadline } from "../../clock/deadline-queue.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { RequestHolder } from "../../request/request-observer.js";
import type { EvictionReason, SequenceInfo } from "../../request/sequence-info.js";
import { type QueueTotals, RequestQueue } from "../request-queue.js";

/** A place for one sequence at one instance. */
export interface Slot {
  readonly batcher: SlotHost;
  /** Position among the slots of the instance; in the direct strategy the row of the batch. */
  readonly number: number;
  /** Order in which free slots are assigned, lowest first: by number, then by instance. */
  readonly rank: number;
  sequence: Sequence | undefined;
}

/** The slots of one instance and the requests in flight there: how sequences see a batcher. */
export interface SlotHost {
  readonly slots: readonly Slot[];
  /** False while the instance is down. */
  readonly healthy: boolean;
  /** Requests that have left their sequence and are not done. */
  readonly atWork: number;
  /** Set when the instance is to be removed: called when no sequence and no request is left. */
  readonly onEmpty: (() => void) | undefined;
  /** Looks at a slot that has a new request or another sequence. */
  changed(slot: Slot): void;
  /** Counts a request of a slot that leaves its sequence. */
  left(slot: Slot): void;
  /** Counts a request of a slot that its instance has finished. */
  released(slot: Slot): void;
  /** Continues with the next request of a slot, after the scheduler has handled the release. */
  goOn(slot: Slot): void;
}

/** Callbacks from a sequence to the scheduler. */
export interface SequenceOwner {
  /** A waiting request and those behind it were cancelled: the sequence accepts no more. */
  gaveUp(sequence: Sequence): void;
  /** The model has seen the last request of a sequence that had no END. */
  evicted(info: SequenceInfo, reason: EvictionReason): void;
}

/**
 * The waiting requests of one correlation id, in a slot or in the backlog.
 *
 * ```
 * START --> [request, request, ...] --take--> instance --released-->
 *   open: takes requests | closed: END came, idle, given up | over: closed, and nothing waits: the slot is free
 * ```
 */
export class Sequence implements RequestHolder<PendingRequest> {
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
  readonly #owner: SequenceOwner;
  readonly #waiting: RequestQueue;
  /** Set once the model has seen a request of the sequence. */
  #info: SequenceInfo | undefined;
  #running = 0;
  #failing = false;
  #retired: EvictionReason | undefined;
  #closedBy: EvictionReason | undefined;

  constructor(
    readonly correlationId: bigint | string,
    owner: SequenceOwner,
    totals: QueueTotals,
  ) {
    this.#owner = owner;
    this.#waiting = new RequestQueue(totals);
  }

  /** The next request. */
  get head(): PendingRequest | undefined {
    return this.#waiting.head;
  }

  /** Number of waiting requests. */
  get size(): number {
    return this.#waiting.size;
  }

  /** True while an instance has a request of the sequence. */
  get running(): boolean {
    return this.#running > 0;
  }

  /** True once the model has seen a request of the sequence. */
  get begun(): boolean {
    return this.#info !== undefined;
  }

  /** The sequence as the model knows it; undefined until the model has seen a request of it. */
  get info(): SequenceInfo | undefined {
    return this.#info;
  }

  /** True if no request waits and none can arrive. */
  get over(): boolean {
    return !this.open && this.#waiting.size === 0;
  }

  push(request: PendingRequest): void {
    this.#waiting.push(request);
    request.holder = this;
  }

  /**
   * Removes a waiting request that was cancelled. Later requests depend on it, so they are cancelled too. In the
   * backlog the whole sequence ends, as in Triton.
   */
  remove(request: PendingRequest): void {
    if (this.#failing) {
      this.#waiting.remove(request);
      return;
    }
    const first = this.slot === undefined ? this.#waiting.head : request;
    const others = from(first).filter((other) => other !== request);
    this.#waiting.remove(request);
    this.#fail(
      others,
      new TritonError(
        "CANCELLED",
        "another request of the same sequence was cancelled, which ended the sequence",
        {
          reason: "SEQUENCE_CANCELLED",
        },
      ),
    );
    this.#owner.gaveUp(this);
  }

  /** Ends every waiting request. */
  failAll(error: TritonError): void {
    this.#fail(from(this.#waiting.head), error);
  }

  #fail(requests: readonly PendingRequest[], error: TritonError): void {
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

  /** Takes the first request for an instance. A START begins a new sequence, even if the old one is not over. */
  take(request: PendingRequest, slot: Slot): SequenceInfo {
    this.#waiting.remove(request);
    if (request.sequenceStart && this.#info !== undefined) this.#owner.evicted(this.#info, "restarted");
    if (request.sequenceStart || this.#info === undefined) {
      this.#info = { correlationId: this.correlationId, slot: slot.number };
    }
    request.sequence = this.#info;
    this.#running++;
    return this.#info;
  }

  /** Records that an instance has finished with a request of the sequence. */
  released(): void {
    this.#running--;
    this.#tell();
  }

  /**
   * Records that the sequence has lost its slot. Once the model has seen its last request, the state kept for it can be
   * evicted.
   */
  retire(): void {
    this.#retired = this.#closedBy;
    this.#tell();
  }

  #tell(): void {
    if (this.#retired === undefined || this.#running > 0 || this.#info === undefined) return;
    this.#owner.evicted(this.#info, this.#retired);
    this.#info = undefined;
  }
}

/** Lists a request and those behind it. */
function from(first: PendingRequest | undefined): PendingRequest[] {
  const all: PendingRequest[] = [];
  for (let one = first; one !== undefined; one = one.next) all.push(one);
  return all;
}
