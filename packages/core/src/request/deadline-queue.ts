import type { Clock, Timer } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { InferenceRequest } from "./inference-request.js";

/**
 * Ends requests whose deadline passes, with one timer for all of them: a binary heap whose head is the next to
 * expire. The timer is armed again only when the head changes. Each request knows its place (`deadlineIndex`),
 * so leaving takes O(log n).
 */
export class DeadlineQueue {
  readonly #clock: Clock;
  readonly #heap: InferenceRequest[] = [];
  #timer: Timer | undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Watches a request that has a deadline. */
  add(request: InferenceRequest): void {
    this.#heap.push(request);
    request.deadlineIndex = this.#heap.length - 1;
    this.#rise(request.deadlineIndex);
    this.#arm();
  }

  /** Stops watching a request; does nothing for one that is not watched. */
  remove(request: InferenceRequest): void {
    const index = request.deadlineIndex;
    if (index < 0) return;
    request.deadlineIndex = -1;
    const last = this.#heap.pop()!;
    if (last !== request) {
      this.#place(last, index);
      this.#rise(index);
      this.#sink(last.deadlineIndex);
    }
    this.#arm();
  }

  #expire(): void {
    this.#timer = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    for (let head = this.#heap[0]; head !== undefined && head.deadline! <= now; head = this.#heap[0]) {
      this.remove(head);
      head.cancel(new TritonError("UNAVAILABLE", "Request timeout expired"));
    }
    this.#arm();
  }

  #arm(): void {
    const at = this.#heap[0]?.deadline ?? Number.POSITIVE_INFINITY;
    if (at === this.#armedFor) return;
    this.#timer?.cancel();
    this.#armedFor = at;
    this.#timer =
      at === Number.POSITIVE_INFINITY
        ? undefined
        : this.#clock.setTimer(Math.max(0, at - this.#clock.now()), () => this.#expire());
  }

  #rise(from: number): void {
    const request = this.#heap[from]!;
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#heap[parent]!.deadline! <= request.deadline!) break;
      this.#place(this.#heap[parent]!, index);
      index = parent;
    }
    this.#place(request, index);
  }

  #sink(from: number): void {
    const request = this.#heap[from]!;
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && this.#heap[child + 1]!.deadline! < this.#heap[child]!.deadline!)
        child++;
      if (this.#heap[child]!.deadline! >= request.deadline!) break;
      this.#place(this.#heap[child]!, index);
      index = child;
    }
    this.#place(request, index);
  }

  #place(request: InferenceRequest, index: number): void {
    this.#heap[index] = request;
    request.deadlineIndex = index;
  }
}
