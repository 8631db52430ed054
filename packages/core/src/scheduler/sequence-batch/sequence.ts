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

/** What a sequence tells the scheduler. */
export interface SequenceOwner {
  /** A waiting request was given up, and those behind it with it: the sequence takes no more. */
  gaveUp(sequence: Sequence): void;
  /** The model has seen its last request of the sequence, which had no END. */
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
  /** False when no request can belong to it any more. */
  open = true;
  slot: Slot | undefined;
  /** When its last request came, on the model's clock. */
  lastUsed = 0;
  /** Looks whether the sequence has been idle for too long. */
  idleDeadline: Deadline | undefined;
  /** When its requests may no longer wait in the backlog. */
  expiresAt = Number.POSITIVE_INFINITY;
  expiry: Deadline | undefined;
  readonly #owner: SequenceOwner;
  readonly #waiting: RequestQueue;
  /** Set from the moment that the model has seen a request of it. */
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

  /** The request whose turn is next. */
  get head(): PendingRequest | undefined {
    return this.#waiting.head;
  }

  /** Waiting requests. */
  get size(): number {
    return this.#waiting.size;
  }

  /** True while an instance has a request of it. */
  get running(): boolean {
    return this.#running > 0;
  }

  /** True when the model has seen a request of it. */
  get begun(): boolean {
    return this.#info !== undefined;
  }

  /** The sequence as the model knows it; undefined while the model has seen no request of it. */
  get info(): SequenceInfo | undefined {
    return this.#info;
  }

  /** Nothing waits and nothing can come. */
  get over(): boolean {
    return !this.open && this.#waiting.size === 0;
  }

  push(request: PendingRequest): void {
    this.#waiting.push(request);
    request.holder = this;
  }

  /**
   * A waiting request was given up: what comes after it would make no sense without it. In the backlog the whole
   * sequence goes, as it does in Triton.
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

  /** No request can come any more. A reason is given when the model will not see an END. */
  close(reason?: EvictionReason): void {
    this.open = false;
    this.#closedBy ??= reason;
    this.idleDeadline?.cancel();
  }

  /** The first request leaves for an instance. A START begins anew, whatever came before it. */
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

  /** An instance is done with a request of it. */
  released(): void {
    this.#running--;
    this.#tell();
  }

  /** The sequence has lost its slot: once the model has seen its last request, what is kept for it can go. */
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

/** A request and those behind it. */
function from(first: PendingRequest | undefined): PendingRequest[] {
  const all: PendingRequest[] = [];
  for (let one = first; one !== undefined; one = one.next) all.push(one);
  return all;
}
