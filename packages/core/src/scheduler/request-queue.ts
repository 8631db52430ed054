import type { PendingRequest } from "../request/pending-request.js";
import type { RequestHolder } from "../request/request-observer.js";

/** Totals that several queues share. */
export interface QueueTotals {
  /** Waiting requests. */
  size: number;
  /** Rows of all waiting requests. */
  rows: number;
}

/**
 * Requests in order of arrival: a doubly linked list through the requests themselves. A cancelled request leaves in
 * O(1) from any position.
 */
export class RequestQueue implements RequestHolder<PendingRequest> {
  #head: PendingRequest | undefined;
  #tail: PendingRequest | undefined;
  #size = 0;
  readonly #totals: readonly QueueTotals[];

  /** @param totals totals to update besides the queue's own size */
  constructor(...totals: readonly QueueTotals[]) {
    this.#totals = totals;
  }

  /** Waiting requests. */
  get size(): number {
    return this.#size;
  }

  /** The request that has waited longest. */
  get head(): PendingRequest | undefined {
    return this.#head;
  }

  push(request: PendingRequest): void {
    request.previous = this.#tail;
    request.next = undefined;
    if (this.#tail === undefined) this.#head = request;
    else this.#tail.next = request;
    this.#tail = request;
    this.#size++;
    for (const totals of this.#totals) {
      totals.size++;
      totals.rows += request.rows;
    }
    request.holder = this;
  }

  remove(request: PendingRequest): void {
    if (request.previous === undefined) this.#head = request.next;
    else request.previous.next = request.next;
    if (request.next === undefined) this.#tail = request.previous;
    else request.next.previous = request.previous;
    request.next = undefined;
    request.previous = undefined;
    request.holder = undefined;
    request.queueDeadline?.cancel();
    request.queueDeadline = undefined;
    this.#size--;
    for (const totals of this.#totals) {
      totals.size--;
      totals.rows -= request.rows;
    }
  }
}
