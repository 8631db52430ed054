import type { TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";

/** Payloads that wait for an instance, in order of arrival. */
export class PayloadQueue {
  /** Milliseconds that a payload must have waited before the next one may be merged into it; 0 for never. */
  mergeAfterMs = 0;
  maxBatchSize = 0;
  /** A list through the payloads, so that a payload leaves from any position in O(1) without a trace. */
  #head: Payload | undefined;
  #tail: Payload | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The waiting payloads, next one first. */
  get all(): readonly Payload[] {
    const all: Payload[] = [];
    for (let one = this.#head; one !== undefined; one = one.next) all.push(one);
    return all;
  }

  /** The payload that is taken next. */
  get head(): Payload | undefined {
    return this.#head;
  }

  /** @param onLeft called when the payload leaves because its last request was cancelled */
  add(payload: Payload, onLeft: () => void): void {
    payload.state = "queued";
    payload.onEmpty = (empty) => {
      this.#leave(empty);
      onLeft();
    };
    payload.previous = this.#tail;
    if (this.#tail === undefined) this.#head = payload;
    else this.#tail.next = payload;
    this.#tail = payload;
    this.#size++;
  }

  /** Takes the oldest payload, and merges payloads into it that waited longer than `mergeAfterMs`. */
  take(now: number): Payload | undefined {
    const payload = this.head;
    if (payload === undefined) return undefined;
    this.#leave(payload);
    if (this.mergeAfterMs > 0 && !payload.saturated) this.#mergeInto(payload, now);
    return payload;
  }

  /** Fails the requests of all payloads. */
  fail(error: TritonError): void {
    for (const payload of this.all) payload.fail(error);
  }

  #mergeInto(payload: Payload, now: number): void {
    for (let next = this.head; next !== undefined; next = this.head) {
      if (next.saturated || now - next.oldestQueueStart <= this.mergeAfterMs) return;
      if (payload.batchSize + next.batchSize > this.maxBatchSize || !payload.accepts(next)) return;
      this.#leave(next);
      payload.absorb(next);
    }
  }

  #leave(payload: Payload): void {
    payload.state = "taken";
    payload.onEmpty = undefined;
    const { previous, next } = payload;
    if (previous === undefined) this.#head = next;
    else previous.next = next;
    if (next === undefined) this.#tail = previous;
    else next.previous = previous;
    payload.previous = undefined;
    payload.next = undefined;
    this.#size--;
  }
}
