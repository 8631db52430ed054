import type { InferenceRequest, ResponseGate } from "../../request/inference-request.js";

interface Slot {
  readonly deliveries: (() => void)[];
  done: boolean;
}

/**
 * Holds answers back until those of all earlier requests are out (`preserveOrdering`). A request gets its place
 * when it leaves the queue; one that is given up loses it and holds nobody up.
 */
export class OrderedResponses {
  readonly #slots: Slot[] = [];

  /** Gives a request the next place. */
  admit(request: InferenceRequest): void {
    const slot: Slot = { deliveries: [], done: false };
    this.#slots.push(slot);
    const gate: ResponseGate = {
      pass: (deliver, final) => {
        slot.deliveries.push(deliver);
        slot.done ||= final;
        this.#flush();
      },
      leave: () => {
        slot.done = true;
        this.#flush();
      },
    };
    request.gate = gate;
  }

  #flush(): void {
    for (let slot = this.#slots[0]; slot !== undefined; slot = this.#slots[0]) {
      for (const deliver of slot.deliveries.splice(0)) deliver();
      if (!slot.done) return;
      this.#slots.shift();
    }
  }
}
