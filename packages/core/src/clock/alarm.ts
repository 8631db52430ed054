import type { Clock, Timer } from "./clock.js";

/** Sums of fractional milliseconds may miss by this much. */
const CLOCK_ERROR_MS = 0.001;

/** One timer that is set, set anew and called off. */
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

  /** Rings once after so many milliseconds, and not at the time that it was set for before. */
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
