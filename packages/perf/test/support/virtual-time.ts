import type { MeasureClock } from "../../src/measure/measure-level.js";

/** A clock on which sleeping takes no time: it moves on at once. */
export class VirtualTime implements MeasureClock {
  #now = 1_000_000;

  now(): number {
    return this.#now;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (!signal.aborted) this.#now += ms;
  }

  /** Moves to a later time. */
  moveTo(time: number): void {
    this.#now = Math.max(this.#now, time);
  }
}
