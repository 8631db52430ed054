/*
 * nghttp2 takes 1000 resets at once and 33 a second. Beyond that it sends GOAWAY and neither reads nor writes any more,
 * of which Node learns nothing. These limits are reached first.
 */
const BURST = 900;
const RESETS_PER_SECOND = 30;

/** Counts the calls that a client resets: a token bucket. */
export class ResetAbuse {
  #tokens = BURST;
  #last = Number.NEGATIVE_INFINITY;

  /** Takes a reset at `now`, in milliseconds; true when it is one too many. */
  isOneTooMany(now: number): boolean {
    const earned = ((now - this.#last) / 1000) * RESETS_PER_SECOND;
    this.#tokens = Math.min(BURST, this.#tokens + earned) - 1;
    this.#last = now;
    return this.#tokens < 0;
  }
}
