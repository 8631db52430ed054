import type { InferenceRequest, RequestHolder } from "../request/inference-request.js";

/**
 * Requests in the order in which they came: a doubly linked list through the requests themselves, so that one
 * that is given up leaves in O(1), from any place, and nothing is left behind.
 */
export class RequestQueue implements RequestHolder {
  #head: InferenceRequest | undefined;
  #tail: InferenceRequest | undefined;
  #size = 0;
  #rows = 0;

  /** Waiting requests. */
  get size(): number {
    return this.#size;
  }

  /** Rows of all waiting requests. */
  get rows(): number {
    return this.#rows;
  }

  /** The request that has waited longest. */
  get head(): InferenceRequest | undefined {
    return this.#head;
  }

  push(request: InferenceRequest): void {
    request.previous = this.#tail;
    request.next = undefined;
    if (this.#tail === undefined) this.#head = request;
    else this.#tail.next = request;
    this.#tail = request;
    this.#size++;
    this.#rows += request.rows;
    request.holder = this;
  }

  /** Takes the request that has waited longest out of the queue. */
  shift(): InferenceRequest | undefined {
    const head = this.#head;
    if (head !== undefined) this.remove(head);
    return head;
  }

  remove(request: InferenceRequest): void {
    if (request.previous === undefined) this.#head = request.next;
    else request.previous.next = request.next;
    if (request.next === undefined) this.#tail = request.previous;
    else request.next.previous = request.previous;
    request.next = undefined;
    request.previous = undefined;
    request.holder = undefined;
    this.#size--;
    this.#rows -= request.rows;
  }
}
