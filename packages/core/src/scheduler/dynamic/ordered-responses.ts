import type { InferenceRequest, ResponseGate } from "../../request/inference-request.js";

class Place implements ResponseGate {
  deliveries: (() => void)[] = [];
  done = false;
  next: Place | undefined = undefined;
  readonly #flush: () => void;

  constructor(flush: () => void) {
    this.#flush = flush;
  }

  pass(deliver: () => void, final: boolean): void {
    this.deliveries.push(deliver);
    this.done ||= final;
    this.#flush();
  }

  leave(): void {
    this.deliveries = [];
    this.done = true;
    this.#flush();
  }
}

/**
 * Holds answers back until those of all earlier requests are out (`preserveOrdering`). A request gets its place when it
 * leaves the queue. A request that is cancelled, even while its answer is held back, drops the held answer and delays
 * no other.
 */
export class OrderedResponses {
  /** The first place whose request is not done. Places are linked, so removing each takes one step. */
  #head: Place | undefined;
  #tail: Place | undefined;
  #flushing = false;
  readonly #flushAll = () => this.#flush();

  admit(request: InferenceRequest): void {
    const place = new Place(this.#flushAll);
    if (this.#tail === undefined) this.#head = place;
    else this.#tail.next = place;
    this.#tail = place;
    request.gate = place;
  }

  /**
   * Delivers answers whose turn has come. A delivery may cancel other requests, which calls this again; the running
   * loop handles those too.
   */
  #flush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    try {
      for (let place = this.#head; place !== undefined; place = this.#head) {
        const { deliveries } = place;
        place.deliveries = [];
        for (const deliver of deliveries) deliver();
        if (place.deliveries.length > 0) continue;
        if (!place.done) return;
        this.#head = place.next;
        if (this.#head === undefined) this.#tail = undefined;
      }
    } finally {
      this.#flushing = false;
    }
  }
}
