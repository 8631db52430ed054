import type { Clock } from "../clock/clock.js";

/** Milliseconds that callbacks may compute before the event loop handles its events. */
const SHARE_MS = 2;

/**
 * What callbacks may have of the event loop at a time. Each one that ends lets the next one start in the same turn of the
 * loop. Without a limit, sockets, timers and health probes would wait until all queued requests are done.
 */
export class LoopShare {
  #spentMs = 0;
  #isSpent = false;
  #listeners = new Set<() => void>();

  /** True from the time the share is spent until the event loop has handled its events. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Counts the time that a callback has computed. */
  spend(ms: number, clock: Pick<Clock, "defer">): void {
    this.#spentMs += ms;
    if (this.#isSpent || this.#spentMs < SHARE_MS) return;
    this.#isSpent = true;
    clock.defer(() => this.#renew());
  }

  /** Calls `listener` once when there is a new share. Those who waited longest are called first. */
  whenRenewed(listener: () => void): void {
    this.#listeners.add(listener);
  }

  #renew(): void {
    this.#spentMs = 0;
    this.#isSpent = false;
    const listeners = this.#listeners;
    this.#listeners = new Set();
    for (const listener of listeners) listener();
  }
}

const shares = new WeakMap<Clock, LoopShare>();

/** The share of all callbacks with this clock: those of the real one run on the same event loop. */
export function loopShareOf(clock: Clock): LoopShare {
  const share = shares.get(clock) ?? new LoopShare();
  shares.set(clock, share);
  return share;
}
