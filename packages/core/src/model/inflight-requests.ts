import type { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";

/**
 * The requests that a model has accepted and not yet answered: a list linked through the requests themselves. A `Set`
 * that lives as long as the model would keep removed entries. Each table that V8 outgrows holds its entries and the
 * next table, and an old table is seldom collected.
 */
export class InflightRequests {
  #first: PendingRequest | undefined;
  #size = 0;
  #emptied: (() => void) | undefined;

  get size(): number {
    return this.#size;
  }

  add(request: PendingRequest): void {
    const next = this.#first;
    request.nextInflight = next;
    if (next !== undefined) next.previousInflight = request;
    this.#first = request;
    this.#size++;
  }

  /** Removes a request; has no effect if it is not in the list. */
  delete(request: PendingRequest): void {
    const { previousInflight: previous, nextInflight: next } = request;
    if (previous !== undefined) previous.nextInflight = next;
    else if (this.#first === request) this.#first = next;
    else return;
    if (next !== undefined) next.previousInflight = previous;
    request.previousInflight = undefined;
    request.nextInflight = undefined;
    this.#size--;
    if (this.#size === 0) this.#emptied?.();
  }

  /** Resolves when the list is empty. */
  async empty(): Promise<void> {
    if (this.#size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  }

  /** Cancels all requests, oldest first. */
  cancel(error: TritonError): void {
    const all: PendingRequest[] = [];
    for (let one = this.#first; one !== undefined; one = one.nextInflight) all.push(one);
    for (const request of all.reverse()) request.cancel(error);
  }
}
