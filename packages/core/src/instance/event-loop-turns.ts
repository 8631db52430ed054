import { setImmediate } from "node:timers/promises";
import type { Clock } from "../clock/clock.js";

/** Longest time in milliseconds without a turn of the event loop. */
const MAX_MS = 5;

/**
 * Gives timers and sockets their turn while a loop waits only for promises. Otherwise, a generator that never ends
 * could not be cancelled.
 */
export class EventLoopTurns {
  #last: number;

  constructor(private readonly clock: Clock) {
    this.#last = clock.now();
  }

  /** True if the event loop should have a turn. */
  get overdue(): boolean {
    return this.clock.now() - this.#last > MAX_MS;
  }

  async next(): Promise<void> {
    await setImmediate();
    this.#last = this.clock.now();
  }
}
