import type { RequestHandle } from "@tritonjs/core/frontend";

/** A request of a stream that has not been answered yet. */
export interface OpenRequest {
  /** Undefined until the model has accepted the request. */
  sent: RequestHandle | undefined;
  previous: OpenRequest | undefined;
  next: OpenRequest | undefined;
}

/**
 * The unanswered requests of a stream, as a list through its entries. A `Set` that lives as long as the stream would
 * keep answered requests alive. Each table that V8 outgrows holds its entries and the next table, and an old table is
 * seldom collected.
 */
export class OpenRequests {
  #first: OpenRequest | undefined;
  #last: OpenRequest | undefined;

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  /** Adds an entry for the next request. */
  add(): OpenRequest {
    const entry: OpenRequest = { sent: undefined, previous: this.#last, next: undefined };
    if (this.#last === undefined) this.#first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    return entry;
  }

  /** Removes an entry; without effect for an entry that has been removed before. */
  delete(entry: OpenRequest): void {
    const { previous, next } = entry;
    if (previous !== undefined) previous.next = next;
    else if (this.#first === entry) this.#first = next;
    else return;
    if (next !== undefined) next.previous = previous;
    else this.#last = previous;
    entry.previous = undefined;
    entry.next = undefined;
  }

  /** Requests that a model has accepted, oldest first. */
  sent(): RequestHandle[] {
    const all: RequestHandle[] = [];
    for (let entry = this.#first; entry !== undefined; entry = entry.next) {
      if (entry.sent !== undefined) all.push(entry.sent);
    }
    return all;
  }
}
