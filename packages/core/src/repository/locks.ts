import type { ModelKey } from "./dependencies.js";

/** A plan whose models are locked until it is released. */
interface LockedPlan<T> {
  readonly value: T;
  release(): void;
}

/**
 * Serializes changes of the same model. Plans are made one after the other. A plan that needs a model in change waits,
 * and is then made again. Changes of other models run at the same time.
 */
export class Locks {
  readonly #locked = new Map<ModelKey, Promise<void>>();
  #planning: Promise<unknown> = Promise.resolve();

  /** Makes a plan and locks its models. */
  async plan<T>(
    make: () => Promise<{ readonly value: T; readonly locked: readonly ModelKey[] }>,
  ): Promise<LockedPlan<T>> {
    for (;;) {
      const attempt = this.#planning.then(() => this.#attempt(make));
      this.#planning = attempt.catch(() => {});
      const made = await attempt;
      if (!("conflict" in made)) return made;
      await made.conflict;
    }
  }

  /** Resolves when no change is in flight. */
  async idle(): Promise<void> {
    await this.#planning;
    while (this.#locked.size > 0) await [...this.#locked.values()][0];
  }

  async #attempt<T>(
    make: () => Promise<{ readonly value: T; readonly locked: readonly ModelKey[] }>,
  ): Promise<LockedPlan<T> | { readonly conflict: Promise<void> }> {
    const { value, locked } = await make();
    for (const key of locked) {
      const other = this.#locked.get(key);
      if (other !== undefined) return { conflict: other };
    }
    let unlock: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      unlock = resolve;
    });
    for (const key of locked) this.#locked.set(key, held);
    const release = () => {
      for (const key of locked) if (this.#locked.get(key) === held) this.#locked.delete(key);
      unlock();
    };
    return { value, release };
  }
}

/** FIFO semaphore with a number of permits. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(permits: number) {
    this.#free = Math.max(1, permits);
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
