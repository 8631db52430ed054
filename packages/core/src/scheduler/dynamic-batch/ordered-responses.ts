import type { InferenceRequest, ResponseGate } from "../../request/inference-request.js";

/** The place of one request among the answers. */
interface Slot {
  deliveries: (() => void)[];
  done: boolean;
  next: Slot | undefined;
}

/**
 * Holds answers back until those of all earlier requests are out (`preserveOrdering`). A request gets its place
 * when it leaves the queue; one that is given up, also while its answer is held back, lets go of what was held and
 * holds nobody up.
 */
export class OrderedResponses {
  /** The first place whose request is not done; places are linked, so that any number leaves in one step each. */
  #head: Slot | undefined;
  #tail: Slot | undefined;
  #flushing = false;

  /** Gives a request the next place. */
  admit(request: InferenceRequest): void {
    const slot: Slot = { deliveries: [], done: false, next: undefined };
    if (this.#tail === undefined) this.#head = slot;
    else this.#tail.next = slot;
    this.#tail = slot;
    const gate: ResponseGate = {
      pass: (deliver, final) => {
        slot.deliveries.push(deliver);
        slot.done ||= final;
        this.#flush();
      },
      leave: () => {
        slot.deliveries = [];
        slot.done = true;
        this.#flush();
      },
    };
    request.gate = gate;
  }

  /** What is delivered may give other requests up, which comes back here: the loop at work sees to those too. */
  #flush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    try {
      for (let slot = this.#head; slot !== undefined; slot = this.#head) {
        const { deliveries } = slot;
        slot.deliveries = [];
        for (const deliver of deliveries) deliver();
        if (slot.deliveries.length > 0) continue;
        if (!slot.done) return;
        this.#head = slot.next;
        if (this.#head === undefined) this.#tail = undefined;
      }
    } finally {
      this.#flushing = false;
    }
  }
}
