import type { Clock, Timer } from "./clock.js";

/** Rounding error of sums of fractional milliseconds. */
const CLOCK_ERROR_MS = 0.001;

/** One timer that can be set, reset and cancelled. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: Timer | undefined;
  #at = 0;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  get isSet(): boolean {
    return this.#timer !== undefined;
  }

  /** Rings once after `waitMs` milliseconds. Replaces an earlier setting. */
  set(waitMs: number): void {
    const at = this.#clock.now() + waitMs;
    if (this.#timer !== undefined && Math.abs(at - this.#at) < CLOCK_ERROR_MS) return;
    this.callOff();
    this.#at = at;
    this.#timer = this.#clock.setTimer(waitMs, () => {
      this.#timer = undefined;
      this.#ring();
    });
  }

  callOff(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
