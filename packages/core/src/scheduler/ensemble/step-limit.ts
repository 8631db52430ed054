/** A start that waits for its turn. */
export interface WaitingStart {
  /** Starts, or says that it is no longer wanted: then the turn goes to the next. */
  start(): boolean;
}

/** Lets one step of an ensemble have so many requests under way, over all requests of the ensemble. */
export class StepLimit {
  #underWay = 0;
  /** A set keeps the order, and lets one leave from any place. */
  readonly #waiting = new Set<WaitingStart>();

  /** @param max 0 for any number */
  constructor(private readonly max: number) {}

  /** Starts at once, or when its turn comes. Returns whether it started at once. */
  acquire(waiting: WaitingStart): boolean {
    if (this.max > 0 && this.#underWay >= this.max) {
      this.#waiting.add(waiting);
      return false;
    }
    this.#underWay++;
    if (!waiting.start()) this.release();
    return true;
  }

  /** A request of the step is over. */
  release(): void {
    this.#underWay--;
    for (const next of this.#waiting) {
      if (this.#underWay >= this.max) return;
      this.#waiting.delete(next);
      this.#underWay++;
      if (!next.start()) this.#underWay--;
    }
  }

  /** One that waits is no longer wanted. */
  leave(waiting: WaitingStart): void {
    this.#waiting.delete(waiting);
  }
}
