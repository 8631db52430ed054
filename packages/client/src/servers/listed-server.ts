/** Pause after the first failure: long enough to spare a starting server, short enough to use it soon after. */
const FIRST_PAUSE_MS = 100;

/** Longest pause between two trials of a server that stays away. */
const LONGEST_PAUSE_MS = 10_000;

/** Returns the pause after a further failure: twice `pauseMs`, at most `longestMs`. */
export function nextPause(pauseMs: number, longestMs = LONGEST_PAUSE_MS): number {
  return pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, longestMs);
}

/**
 * One of several servers: its calls in flight, and whether it is left out. After a failure it gets no calls for a pause
 * that doubles with each further failure. After the pause it gets one call as a trial.
 */
export class ListedServer<C> {
  /** Calls in flight. */
  outstanding = 0;
  /** True for a server that is not in the list any more. */
  removed = false;
  #pauseMs = 0;
  #outUntil = Number.NEGATIVE_INFINITY;

  constructor(
    readonly url: string,
    readonly carrier: C,
  ) {}

  /** Time until which it is left out. */
  get outUntil(): number {
    return this.#outUntil;
  }

  /** True if it may get a call. */
  accepts(now: number): boolean {
    return this.#pauseMs === 0 || (now >= this.#outUntil && this.outstanding === 0);
  }

  /** Leaves it out. Failures of calls that were in flight together count once. */
  failed(now: number, atLeastMs = 0): void {
    if (now < this.#outUntil) return;
    this.#pauseMs = nextPause(this.#pauseMs);
    this.#outUntil = now + Math.max(this.#pauseMs, Number.isFinite(atLeastMs) ? atLeastMs : 0);
  }

  worked(): void {
    this.#pauseMs = 0;
    this.#outUntil = Number.NEGATIVE_INFINITY;
  }
}
