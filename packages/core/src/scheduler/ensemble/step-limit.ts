/** A start that waits for a permit. */
export interface WaitingStart {
  /** Starts. Returns false if it is no longer wanted; the permit goes to the next then. */
  start(): boolean;
}

/** FIFO semaphore that limits the requests in flight of one step, over all requests of the ensemble. */
export class StepLimit {
  #underWay = 0;
  /** A set, because it keeps the order and allows removal from any position. */
  readonly #waiting = new Set<WaitingStart>();

  /** @param max number of permits; 0 for no limit */
  constructor(private readonly max: number) {}

  /** Starts at once, or when a permit is free. Returns whether it started at once. */
  acquire(waiting: WaitingStart): boolean {
    if (this.max > 0 && this.#underWay >= this.max) {
      this.#waiting.add(waiting);
      return false;
    }
    this.#underWay++;
    if (!waiting.start()) this.release();
    return true;
  }

  /** Returns the permit of a request of the step that is over. */
  release(): void {
    this.#underWay--;
    for (const next of this.#waiting) {
      if (this.#underWay >= this.max) return;
      this.#waiting.delete(next);
      this.#underWay++;
      if (!next.start()) this.#underWay--;
    }
  }

  /** Removes a waiting start that is no longer wanted. */
  leave(waiting: WaitingStart): void {
    this.#waiting.delete(waiting);
  }
}
