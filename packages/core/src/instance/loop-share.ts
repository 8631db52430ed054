import type { Clock } from "../clock/clock.js";

/** Milliseconds in which callbacks may start and go on before the event loop handles its events. */
const SHARE_MS = 2;

/** Milliseconds after the first callback of a turn in which further ones may start, whatever took the time. */
const TURN_MS = 50;

/**
 * Time that all callbacks of an event loop share between two of its turns. A callback that ends lets the next one start
 * in the same turn, and a generator that waits only for promises goes on in the same turn. Without a limit, sockets,
 * timers and health probes would wait until all queued requests are done.
 *
 * The share is spent by callbacks that took this long together, or by one event that led to callbacks and took this
 * long with all that they caused. The time in which sockets are read between callbacks does not count, up to 50 ms:
 * requests that have arrived would only wait in memory.
 */
export class LoopShare {
  readonly #clock: Pick<Clock, "now" | "defer">;
  /** Number of the turn. */
  #turn = 0;
  #hasBegun = false;
  /** When the first callback of this turn began. */
  #turnSince = 0;
  /** Milliseconds of this turn in which callbacks were at work, without those that are. */
  #spentMs = 0;
  /** Number of callbacks at work that began in this turn, and when the first of them did. */
  #atWork = 0;
  #atWorkSince = 0;
  /** When the first callback began that the present event of the event loop led to. */
  #eventSince: number | undefined;
  readonly #endEvent = (): void => {
    this.#eventSince = undefined;
  };
  #listeners = new Set<() => void>();

  constructor(clock: Pick<Clock, "now" | "defer">) {
    this.#clock = clock;
  }

  /** True from the time the share is spent until the event loop has handled its events. */
  get isSpent(): boolean {
    if (!this.#hasBegun) return false;
    const now = this.#clock.now();
    if (now - this.#turnSince >= TURN_MS) return true;
    if (this.#eventSince !== undefined && now - this.#eventSince >= SHARE_MS) return true;
    return this.#spentMs + (this.#atWork > 0 ? now - this.#atWorkSince : 0) >= SHARE_MS;
  }

  /**
   * A callback begins or goes on.
   *
   * @returns the number of the turn, for `end`
   */
  begin(): number {
    const now = this.#clock.now();
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#turnSince = now;
      this.#clock.defer(() => this.#renew());
    }
    if (this.#eventSince === undefined) {
      this.#eventSince = now;
      // Runs after all promises that the event settled.
      process.nextTick(this.#endEvent);
    }
    if (this.#atWork === 0) this.#atWorkSince = now;
    this.#atWork++;
    return this.#turn;
  }

  /** A callback that began in this turn is done or waits. One of an earlier turn does not count. */
  end(turn: number): void {
    if (turn !== this.#turn) return;
    this.#atWork--;
    if (this.#atWork === 0) this.#spentMs += this.#clock.now() - this.#atWorkSince;
  }

  /** Calls `listener` once when there is a new share. Listeners are called in the order of their registration. */
  whenRenewed(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves when there is a new share. */
  renewed(): Promise<void> {
    return new Promise((resolve) => this.whenRenewed(resolve));
  }

  #renew(): void {
    this.#turn++;
    this.#hasBegun = false;
    this.#spentMs = 0;
    this.#atWork = 0;
    const listeners = this.#listeners;
    this.#listeners = new Set();
    for (const listener of listeners) listener();
  }
}

const shares = new WeakMap<Clock, LoopShare>();

/** The share of all callbacks with this clock: those of the real one run on the same event loop. */
export function loopShareOf(clock: Clock): LoopShare {
  let share = shares.get(clock);
  if (share === undefined) {
    share = new LoopShare(clock);
    shares.set(clock, share);
  }
  return share;
}
