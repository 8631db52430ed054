import { TritonError } from "@tritonjs/protocol";

/** Milliseconds of each turn of the event loop for long work of all requests together. */
const SHARE_MS = 5;

/** Work in parts of about a millisecond each. */
export type Parts<T> = Generator<void, T>;

/** A request that may end before its work does: a signal, or a client that may have left. */
export interface Waiting {
  readonly aborted: boolean;
}

interface Job {
  readonly parts: Parts<unknown>;
  readonly waiting: Waiting | undefined;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** The event loop. `defer` runs a function in its next turn. */
interface LoopClock {
  now(): number;
  defer(run: () => void): void;
}

const ownLoop: LoopClock = { now: () => performance.now(), defer: (run) => void setImmediate(run) };

/**
 * Does long work on texts for a few milliseconds of each turn of the event loop, so that sockets, timers and health
 * probes wait for no more than that:
 *
 *     turn 1            turn 2            turn 3
 *     events | A A A |  events | A B A |  events | B A B |
 *
 * The jobs take turns, so a short one never waits for the end of a long one.
 */
export class Turns {
  readonly #clock: LoopClock;
  readonly #jobs: Job[] = [];
  /** Time at which the share of this turn is spent. */
  #until = 0;
  #isTurn = false;

  constructor(clock: LoopClock = ownLoop) {
    this.#clock = clock;
  }

  /**
   * Does work at once while the turn has time left, and the rest in the turns to come.
   *
   * @param waiting request that the work is for. When it has ended, the work ends, too
   * @returns the result; a promise if the work takes more than this turn
   * @throws the error of a part, and TritonError CANCELLED if the request has ended
   */
  run<T>(parts: Parts<T>, waiting?: Waiting): T | Promise<T> {
    this.#startTurn();
    while (this.#clock.now() < this.#until) {
      const { done, value } = parts.next();
      if (done) return value;
    }
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push({ parts, waiting, resolve, reject });
    });
  }

  #startTurn(): void {
    if (this.#isTurn) return;
    this.#isTurn = true;
    this.#until = this.#clock.now() + SHARE_MS;
    this.#clock.defer(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#isTurn = false;
    if (this.#jobs.length === 0) return;
    this.#startTurn();
    do {
      const job = this.#jobs.shift();
      if (job === undefined) return;
      if (!doPart(job)) this.#jobs.push(job);
    } while (this.#clock.now() < this.#until);
  }
}

/** @returns true if the job has ended */
function doPart({ parts, waiting, resolve, reject }: Job): boolean {
  try {
    if (waiting?.aborted) throw new TritonError("CANCELLED", "the request was cancelled");
    const { done, value } = parts.next();
    if (done) resolve(value as never);
    return done === true;
  } catch (error) {
    reject(error);
    return true;
  }
}

/** The turns of this thread. */
export const turns = new Turns();

/** Does all parts at once. */
export function allParts<T>(parts: Parts<T>): T {
  let part = parts.next();
  while (!part.done) part = parts.next();
  return part.value;
}
