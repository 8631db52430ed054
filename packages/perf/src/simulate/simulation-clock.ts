import type { Clock, Timer } from "@tritonjs/core/extension";
import { Heap } from "@tritonjs/core/internal";

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
  readonly #timers = new Heap<Entry>((a, b) => a.at - b.at || a.order - b.order);
  #deferred: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#timers.add(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  defer(run: () => void): void {
    this.#deferred.push(run);
  }

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

  async drain(): Promise<void> {
    for (let next = this.#next(); next < Number.POSITIVE_INFINITY; next = this.#next()) await this.#run(next);
  }

  async #run(end: number): Promise<void> {
    while (this.#next() <= end) {
      const { at, run } = this.#timers.take()!;
      this.#now = Math.max(this.#now, at);
      run!();
      for (let turn = 0; turn < TURNS; turn++) await undefined;
      this.runDeferred();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Time of the next timer that was not cancelled. */
  #next(): number {
    while (this.#timers.first !== undefined && this.#timers.first.run === undefined) this.#timers.take();
    return this.#timers.first?.at ?? Number.POSITIVE_INFINITY;
  }
}
