/** A start that waits for its turn. */
export interface WaitingStart {
  /** Starts, or says that it is no longer wanted: then the turn goes to the next. */
  start(): boolean;
}

/** Lets one step of an ensemble have so many requests under way, over all requests of the ensemble. */
export class StepLimit {
  #underWay = 0;
  readonly #waiting: WaitingStart[] = [];

  /** @param max 0 for any number */
  constructor(private readonly max: number) {}

  /** Starts at once, or when its turn comes. Returns whether it started at once. */
  acquire(waiting: WaitingStart): boolean {
    if (this.max > 0 && this.#underWay >= this.max) {
      this.#waiting.push(waiting);
      return false;
    }
    this.#underWay++;
    if (!waiting.start()) this.release();
    return true;
  }

  /** A request of the step is over. */
  release(): void {
    this.#underWay--;
    while (this.#waiting.length > 0 && (this.max === 0 || this.#underWay < this.max)) {
      this.#underWay++;
      if (!this.#waiting.shift()!.start()) this.#underWay--;
    }
  }
}
