import type { FedLoop, Feeder } from "./feeder.js";
import type { LoadClock } from "./load-clock.js";
import type { PeriodicConcurrencyLevel } from "./load-level.js";

/** Sends requests in batches: the next one when all requests of the last one have had their responses, or have ended. */
export class PeriodicFeeder implements Feeder {
  readonly #loop: FedLoop;
  readonly #clock: LoadClock;
  readonly #level: PeriodicConcurrencyLevel;
  #sent = 0;
  /** Requests of the last batch without responses enough. */
  #waiting = 0;
  #isSending = false;
  #isStopped = false;

  constructor(loop: FedLoop, clock: LoadClock, level: PeriodicConcurrencyLevel) {
    this.#loop = loop;
    this.#clock = clock;
    this.#level = level;
  }

  start(): void {
    this.#sendBatches();
  }

  ended(): void {}

  reached(): void {
    this.#waiting--;
    this.#sendBatches();
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Requests may end while they are sent, so this is a loop and not a recursion. */
  #sendBatches(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    const { start, end, step } = this.#level;
    while (this.#waiting === 0 && this.#sent < end && !this.#isStopped) {
      const count = Math.min(this.#sent === 0 ? start : step, end - this.#sent);
      this.#waiting = count;
      this.#sent += count;
      const now = this.#clock.now();
      for (let i = 0; i < count && !this.#isStopped; i++) this.#loop.send(now);
    }
    this.#isSending = false;
    if (this.#sent === end && !this.#isStopped) this.#loop.finished();
  }
}
