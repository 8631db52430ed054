import { performance } from "node:perf_hooks";
import type { Clock } from "../clock/clock.js";

/** Number of refusals that go out together: small enough to keep the event loop's turn short. */
const LOT = 8;

/** Milliseconds between two lots while the event loop has idle time. Refusals then take a quarter of a core at most. */
const SHORTEST_TICK_MS = 4;

/** Milliseconds between two lots while the event loop is busy. */
const LONGEST_TICK_MS = 64;

/** Longest wait of a refusal, in milliseconds and approximately. Larger lots go out when the line is long. */
const LONGEST_WAIT_MS = 1000;

/** Utilization above which the event loop counts as busy. Below half of it, it counts as idle. */
const BUSY = 0.8;

/**
 * Releases refusals in small lots, so that clients which retry at once do not take turns of the event loop from running
 * requests. A small number of refusals goes out at once, and costs one look at the clock.
 *
 * ```
 * refusal --fewer than 8 in a tick--> at once
 *         --more--> line --8 each tick, more when the line is long--> out
 * ```
 *
 * A tick is short while the event loop has time to spare, and grows while it is busy.
 */
export class RefusalLine {
  readonly #clock: Clock;
  readonly #utilization: () => number;
  #waiting: (() => void)[] = [];
  #tickMs = SHORTEST_TICK_MS;
  #tickStart = Number.NEGATIVE_INFINITY;
  #outInTick = 0;

  /** @param utilization share of the time since the last call in which the event loop was busy */
  constructor(clock: Clock, utilization: () => number = loopUtilization()) {
    this.#clock = clock;
    this.#utilization = utilization;
  }

  /** Undefined for a refusal that may go out at once. Otherwise a promise for its turn. */
  turn(): Promise<void> | undefined {
    if (this.#waiting.length === 0) {
      const now = this.#clock.now();
      if (now - this.#tickStart >= this.#tickMs) {
        this.#tickStart = now;
        this.#outInTick = 0;
      }
      if (this.#outInTick < LOT) {
        this.#outInTick++;
        return undefined;
      }
      this.#utilization();
      this.#wait();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wait(): void {
    this.#clock.setTimer(this.#tickMs, () => this.#letOut());
  }

  #letOut(): void {
    const share = this.#tickMs / LONGEST_WAIT_MS;
    const lot = this.#waiting.splice(0, Math.max(LOT, Math.ceil(this.#waiting.length * share)));
    this.#tickStart = this.#clock.now();
    this.#outInTick = lot.length;
    const utilization = this.#utilization();
    if (utilization > BUSY) this.#tickMs = Math.min(LONGEST_TICK_MS, 2 * this.#tickMs);
    else if (utilization < BUSY / 2) this.#tickMs = Math.max(SHORTEST_TICK_MS, this.#tickMs / 2);
    for (const release of lot) release();
    if (this.#waiting.length > 0) this.#wait();
  }
}

/** Makes a function that returns the event loop's utilization since its last call. */
function loopUtilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
