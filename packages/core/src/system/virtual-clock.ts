import type { Clock, Timer } from "./clock.js";

interface Entry {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * A clock that moves only on command, for tests and simulations. A scenario of minutes plays in milliseconds, with the
 * same result each time.
 *
 * @example
 * ```ts
 * const clock = new VirtualClock();
 * clock.setTimer(500, () => console.log(clock.now())); // 500
 * await clock.advance(1000);
 * ```
 */
export class VirtualClock implements Clock {
  #now = 0;
  #order = 0;
  #entries: Entry[] = [];
  #deferred: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#entries.push(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  defer(run: () => void): void {
    this.#deferred.push(run);
  }

  /** Moves time forward by `ms` milliseconds. Runs due timers in order, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.settle();
    for (let next = this.#next(); next !== undefined && next.at <= end; next = this.#next()) {
      this.#entries.splice(this.#entries.indexOf(next), 1);
      this.#now = Math.max(this.#now, next.at);
      next.run?.();
      await this.settle();
    }
    this.#now = end;
    await this.settle();
  }

  /** Runs deferred calls and lets promises settle, without moving time. */
  async settle(): Promise<void> {
    do {
      const batch = this.#deferred;
      this.#deferred = [];
      for (const run of batch) run();
      await new Promise<void>((resolve) => setImmediate(resolve));
    } while (this.#deferred.length > 0);
  }

  #next(): Entry | undefined {
    let best: Entry | undefined;
    this.#entries = this.#entries.filter((entry) => entry.run !== undefined);
    for (const entry of this.#entries) {
      if (best === undefined || entry.at < best.at || (entry.at === best.at && entry.order < best.order))
        best = entry;
    }
    return best;
  }
}
