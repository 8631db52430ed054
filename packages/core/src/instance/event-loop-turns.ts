import { setImmediate } from "node:timers/promises";

/** Longest time without a turn of the event loop. */
const MAX_MS = 5;

/**
 * Sees to it that a loop which waits for nothing but promises does not keep timers and sockets from their turn: a
 * generator that never ends could then not even be given up.
 */
export class EventLoopTurns {
  #last = performance.now();

  /** True when the event loop should have a turn. */
  get overdue(): boolean {
    return performance.now() - this.#last > MAX_MS;
  }

  async next(): Promise<void> {
    await setImmediate();
    this.#last = performance.now();
  }
}
