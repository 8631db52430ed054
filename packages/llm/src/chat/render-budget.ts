/** Steps and bytes of a render that do not depend on the request: about 30 ms of work. */
export const OWN_STEPS = 100_000;
export const OWN_BYTES = 2 ** 24;

/** Steps and bytes for each value of JSON that the request brings, and for each character. */
const STEPS_OF_VALUE = 1_000;
const BYTES_OF_VALUE = 512;
const STEPS_OF_CHARACTER = 4;
const BYTES_OF_CHARACTER = 16;

/** Bytes of a render, whatever the request brings. */
const MOST_BYTES = 2 ** 29;

/** Calls of macros within each other. Each takes about two kilobytes of the stack. */
export const MOST_DEPTH = 200;

/** Steps between two places at which a render can pause: about a millisecond. */
const STEPS_OF_PART = 5_000;

/** Bytes of work that count as a step. */
const BYTES_OF_STEP = 64;

/** The end of a render that takes more than its budget. */
class BudgetFault extends Error {}

/**
 * What a render may take: steps for its time, and bytes for the values that it makes, those that it drops included. Both
 * are counted before the work is done. Templates come with models, and a few words of one can ask for any amount of work.
 */
export class RenderBudget {
  #steps: number;
  #bytes: number;
  readonly #mostSteps: number;
  readonly #mostBytes: number;
  #depth = 0;
  #pauseAt: number;

  /**
   * @param values number of values of JSON that the request brings
   * @param characters number of characters in them
   */
  constructor(values = 0, characters = 0) {
    this.#mostSteps = OWN_STEPS + values * STEPS_OF_VALUE + characters * STEPS_OF_CHARACTER;
    const bytes = OWN_BYTES + values * BYTES_OF_VALUE + characters * BYTES_OF_CHARACTER;
    this.#mostBytes = Math.min(bytes, MOST_BYTES);
    this.#steps = this.#mostSteps;
    this.#bytes = this.#mostBytes;
    this.#pauseAt = this.#steps - STEPS_OF_PART;
  }

  /** True if enough was done since the last pause. */
  takePause(): boolean {
    if (this.#steps > this.#pauseAt) return false;
    this.#pauseAt = this.#steps - STEPS_OF_PART;
    return true;
  }

  countSteps(count: number): void {
    this.#steps -= count;
    if (this.#steps >= 0) return;
    throw new BudgetFault(`expected at most ${this.#mostSteps} steps, got more`);
  }

  countBytes(count: number): void {
    this.#bytes -= count;
    // The comparison is false for NaN, too.
    if (!(this.#bytes >= 0)) {
      throw new BudgetFault(`expected values of at most ${this.#mostBytes} bytes, got more`);
    }
    this.countSteps(count / BYTES_OF_STEP);
  }

  /** Begins a call, which `leave` ends. */
  enter(): void {
    if (++this.#depth > MOST_DEPTH)
      throw new BudgetFault(`expected at most ${MOST_DEPTH} calls of macros within each other, got more`);
  }

  leave(): void {
    this.#depth--;
  }

  /** Does a part of the render, which counts against this budget. */
  run<T>(part: () => T): T {
    const before = current;
    current = this;
    try {
      return part();
    } catch (error) {
      const isDeep = error instanceof RangeError && error.message.startsWith("Maximum call stack");
      throw isDeep ? new BudgetFault("expected values and expressions that nest less deep") : error;
    } finally {
      current = before;
    }
  }
}

/** The budget of the part that runs now. A part runs to its end before another one begins. */
let current: RenderBudget | undefined;

/** The budget of the render. */
export function currentBudget(): RenderBudget | undefined {
  return current;
}

/** Counts work of the render, before it is done. @throws BudgetFault if the budget does not have it */
export function countSteps(count = 1): void {
  current?.countSteps(count);
}

/** Counts bytes of values that are made next: one for each character, and eight for each element. @throws BudgetFault */
export function countBytes(count: number): void {
  current?.countBytes(count);
}

/** Counts the search for a text in another one, which takes the product of their lengths at worst. @throws BudgetFault */
export function countSearch(text: string, part: string): void {
  current?.countSteps((text.length * (1 + part.length)) / 256);
}
