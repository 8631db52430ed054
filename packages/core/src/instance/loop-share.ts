import type { Clock } from "../clock/clock.js";

/** Milliseconds in which callbacks may start and go on before the event loop handles its events. */
const SHARE_MS = 2;

/**
 * Time that all callbacks of an event loop share between two of its turns. A callback that ends lets the next one start
 * in the same turn, and a generator that waits only for promises goes on in the same turn. Without a limit, sockets,
 * timers and health probes would wait until all queued requests are done.
 */
export class LoopShare {
  readonly #clock: Pick<Clock, "now" | "defer">;
  /** When the first callback of this turn began; undefined until then. */
  #since: number | undefined;
  #listeners = new Set<() => void>();

  constructor(clock: Pick<Clock, "now" | "defer">) {
    this.#clock = clock;
  }

  /** True from the time the share is spent until the event loop has handled its events. */
  get isSpent(): boolean {
    return this.#since !== undefined && this.#clock.now() - this.#since >= SHARE_MS;
  }

  /** A callback begins or goes on. */
  begin(): void {
    if (this.#since !== undefined) return;
    this.#since = this.#clock.now();
    this.#clock.defer(() => this.#renew());
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
    this.#since = undefined;
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
