import type { Clock, Timer } from "./clock.js";

/** A call scheduled for a certain time, unless it is cancelled before. */
export interface Deadline {
  /** Cancels the call in O(log n). Does nothing once the deadline has passed. */
  cancel(): void;
}

/**
 * Any number of deadlines with one timer: a binary heap whose head is the next to pass. The timer is armed again only
 * for an earlier deadline. For a cancelled one it fires without effect. Each entry knows its index, so that cancelling
 * one takes O(log n) and leaves nothing behind.
 */
export class DeadlineQueue {
  readonly #clock: Clock;
  readonly #heap: Entry[] = [];
  #timer: Timer | undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Calls `pass` when the clock reaches `at`, in milliseconds. */
  add(at: number, pass: () => void): Deadline {
    const entry = new Entry(at, pass, this);
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
    this.#arm();
    return entry;
  }

  /** Called by entries only. */
  remove(entry: Entry): void {
    const { index } = entry;
    if (index < 0) return;
    entry.index = -1;
    const last = this.#heap.pop()!;
    if (last !== entry) {
      this.#rise(last, index);
      this.#sink(last, last.index);
    }
    this.#arm();
  }

  #passAll(): void {
    this.#timer = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    for (let head = this.#heap[0]; head !== undefined && head.at <= now; head = this.#heap[0]) {
      this.remove(head);
      head.pass();
    }
    this.#arm();
  }

  #arm(): void {
    const at = this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
    if (at === this.#armedFor || (this.#timer !== undefined && at > this.#armedFor && this.size > 0)) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#armedFor = at;
    if (at < Number.POSITIVE_INFINITY) {
      this.#timer = this.#clock.setTimer(Math.max(0, at - this.#clock.now()), () => this.#passAll());
    }
  }

  #rise(entry: Entry, from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#heap[parent]!.at <= entry.at) break;
      this.#place(this.#heap[parent]!, index);
      index = parent;
    }
    this.#place(entry, index);
  }

  #sink(entry: Entry, from: number): void {
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && this.#heap[child + 1]!.at < this.#heap[child]!.at) child++;
      if (this.#heap[child]!.at >= entry.at) break;
      this.#place(this.#heap[child]!, index);
      index = child;
    }
    this.#place(entry, index);
  }

  #place(entry: Entry, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }
}

class Entry implements Deadline {
  /** Index in the heap, -1 outside it. */
  index = -1;

  constructor(
    readonly at: number,
    readonly pass: () => void,
    private readonly queue: DeadlineQueue,
  ) {}

  cancel(): void {
    this.queue.remove(this);
  }
}
