import type { TritonError } from "@tritonjs/protocol";

/**
 * Puts responses in the order of their requests:
 *
 *   opened:   [ A ]--[ B ]--[ C ]        A: nothing yet   B: b1, b2, closed   C: c1
 *   A closes: a1, b1, b2 are written, C is next
 */
export class OrderedStreamResponses<M> {
  readonly #write: (message: M) => void;
  readonly #fail: (error: TritonError) => void;
  /** A list through the places: a `Set` that lives as long as the stream would keep answered requests alive. */
  #first: Place<M> | undefined;
  #last: Place<M> | undefined;

  /** @param fail Receives the error with which a place was closed, at the turn of that place. */
  constructor(write: (message: M) => void, fail: (error: TritonError) => void) {
    this.#write = write;
    this.#fail = fail;
  }

  /** Takes the next place in the order. */
  open(): Place<M> {
    const place = new Place<M>(this);
    if (this.#last === undefined) this.#first = place;
    else this.#last.next = place;
    this.#last = place;
    return place;
  }

  /** Writes the responses of the places at the front of the order. */
  flush(): void {
    for (let place = this.#first; place?.closed; place = this.#first) {
      this.#first = place.next;
      if (place.next === undefined) this.#last = undefined;
      place.next = undefined;
      place.messages.forEach(this.#write);
      if (place.error !== undefined) this.#fail(place.error);
    }
  }
}

/**
 * The place of one request in the order. Its messages are held back until all earlier places are closed and it is
 * closed itself.
 */
export class Place<M> {
  readonly messages: M[] = [];
  closed = false;
  error: TritonError | undefined;
  /** The place after this one. */
  next: Place<M> | undefined;
  readonly #order: OrderedStreamResponses<M>;

  constructor(order: OrderedStreamResponses<M>) {
    this.#order = order;
  }

  add(message: M): void {
    this.messages.push(message);
  }

  close(error?: TritonError): void {
    this.closed = true;
    this.error = error;
    this.#order.flush();
  }
}
