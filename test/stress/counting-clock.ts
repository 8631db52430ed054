import { type Timer, VirtualClock } from "@tritonjs/testing";

/** A virtual clock that counts the armed timers. */
export class CountingClock extends VirtualClock {
  readonly #armed = new Set<object>();

  get armedTimers(): number {
    return this.#armed.size;
  }

  override setTimer(delayMs: number, run: () => void): Timer {
    const entry = {};
    this.#armed.add(entry);
    const timer = super.setTimer(delayMs, () => {
      this.#armed.delete(entry);
      run();
    });
    return {
      cancel: () => {
        this.#armed.delete(entry);
        timer.cancel();
      },
    };
  }
}
