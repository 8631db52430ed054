const FIRST_MS = 10;
const LONGEST_MS = 1000;

/**
 * Pauses of a loop that cannot reach its server: they double from 10 ms to 1 s, and end with the first success. Without
 * them, refused connections would be tried as fast as the machine can.
 */
export class BackOff {
  /** Requests are not sent before this time. */
  until = Number.NEGATIVE_INFINITY;
  /** Text of the last failure. */
  reason = "";
  #nextMs = FIRST_MS;

  failed(now: number, reason: string): void {
    this.reason = reason;
    // The other requests that were in flight fail with the same cause.
    if (now < this.until) return;
    this.until = now + this.#nextMs;
    this.#nextMs = Math.min(LONGEST_MS, 2 * this.#nextMs);
  }

  succeeded(): void {
    this.until = Number.NEGATIVE_INFINITY;
    this.#nextMs = FIRST_MS;
  }
}
