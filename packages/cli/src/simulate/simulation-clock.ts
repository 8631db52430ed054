import type { Clock, Timer } from "@tritonjs/core/testing";

interface Entry {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** Promise turns from the end of an execution to its last effect, with some to spare. */
const TURNS = 24;

/**
 * A virtual clock for millions of events: timers in a heap, without waiting for the real event loop. It lets
 * promises settle after each timer and runs deferred work.
 */
export class SimulationClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #heap: Entry[] = [];
  #deferred: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#push(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  defer(run: () => void): void {
    this.#deferred.push(run);
  }

  /** Runs deferred work. */
  runDeferred(): void {
    while (this.#deferred.length > 0) {
      const all = this.#deferred;
      this.#deferred = [];
      for (const run of all) run();
    }
  }

  /** Moves time to `at`, running due timers in order. Returns at once when none is due. */
  advanceTo(at: number): Promise<void> | undefined {
    if (this.#next() <= at) return this.#run(at);
    this.#now = at;
    return undefined;
  }

  /** Runs timers until a condition holds, or none is left. */
  async runUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const next = this.#next();
      if (next === Number.POSITIVE_INFINITY) return;
      await this.#run(next);
    }
  }

  /** Runs timers until none is left. */
  async drain(): Promise<void> {
    for (let next = this.#next(); next < Number.POSITIVE_INFINITY; next = this.#next()) await this.#run(next);
  }

  async #run(end: number): Promise<void> {
    while (this.#next() <= end) {
      const { at, run } = this.#pop();
      this.#now = Math.max(this.#now, at);
      run!();
      for (let turn = 0; turn < TURNS; turn++) await undefined;
      this.runDeferred();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Time of the next timer that was not cancelled. */
  #next(): number {
    while (this.#heap.length > 0 && this.#heap[0]!.run === undefined) this.#pop();
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): Entry {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (last === top) return top;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return top;
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
