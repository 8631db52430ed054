import type { Clock } from "@tritonjs/testing";

/** Cores that all running batches share equally, as a system that slices time does. */
export class SharedCores {
  #running: { leftMs: number; readonly done: () => void }[] = [];
  #since = 0;
  #timer: { cancel(): void } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly cores: number,
  ) {}

  /** Runs a batch that takes `ms` if it has a core to itself. */
  run(ms: number, done: () => void): void {
    this.#elapse();
    this.#running.push({ leftMs: ms, done });
    this.#next();
  }

  get #speed(): number {
    return Math.min(1, this.cores / this.#running.length);
  }

  #elapse(): void {
    const now = this.clock.now();
    for (const one of this.#running) one.leftMs -= (now - this.#since) * this.#speed;
    this.#since = now;
  }

  #next(): void {
    this.#timer?.cancel();
    if (this.#running.length === 0) return;
    let first = this.#running[0]!;
    for (const one of this.#running) if (one.leftMs < first.leftMs) first = one;
    this.#timer = this.clock.setTimer(Math.max(0, first.leftMs / this.#speed), () => {
      this.#elapse();
      this.#running = this.#running.filter((one) => one !== first);
      this.#next();
      first.done();
    });
  }
}
